import { describe, expect, it } from 'vitest';
import { toToolError } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

const classOf = (text: string): string => classify(toToolError(new Error(text), 'tool')).classification;

describe('R-1.3 words that say something else', () => {
  it.each([
    'network card lost its connection',
    'the network card lost link',
    'memory card blocked by another process',
    'SD card blocked by another application',
    'failed to discard expired entries',
    'could not discard lost packets',
    'error while a postcard expired',
    'failed to sweep an expired cardboard entry',
  ])('R-1.3 no payment is meant: %s', (text) => expect(classOf(text)).toBe('transient'));

  it.each([
    'Your card was declined.',
    'Your card was declined by its issuer.',
    'Card expired',
    'Expired card',
    'The card has been reported stolen',
    'card lost or stolen',
    'The card was reported lost.',
    'Card is blocked.',
    'Your card has been blocked by the issuer',
    'card blocked by your bank',
  ])('R-1.3 a payment is: %s', (text) => expect(classOf(text)).toBe('permanent'));

  it.each([
    'User context or role missing',
    '{"message":"User context or role missing"}',
    '{"error":{"message":"role missing","code":12}}',
    'role missing\n    at check (roles.js:1)',
    'Authorization header missing.',
  ])('R-1.3 what stands behind a message takes nothing from it: %s', (text) => expect(classOf(text)).toBe('permanent'));

  it.each(['{"error":"no response"}', '{"error":"no luck","x":1}', '{"message":"there is no connection"}'])(
    'R-1.3 the quote that ends a message names nothing: %s',
    (text) => expect(classOf(text)).toBe('transient'),
  );

  it.each([
    'fetch failed for https://x.test/schema.json',
    'The upload to https://x.test/v1/invalid/unauthorized did not finish',
    'GET /v1/forbidden_words did not finish',
    'worker 3 stopped at /srv/validation/not_found.js',
  ])('R-1.3 an address says nothing: %s', (text) => expect(classOf(text)).toBe('transient'));

  it.each(['https://x.test/a is unauthorized', 'no such file: /srv/data.csv', 'https://x.test/schema.json: not found'])(
    'R-1.3 what is said of an address does: %s',
    (text) => expect(classOf(text)).toBe('permanent'),
  );

  it.each([
    'cannot connect to the booking service',
    "Can't reach the calendar just now",
    'The worker cannot keep up with the queue',
    'Cannot renew the lease',
    'cannot flush the write-ahead log',
    'Cannot complete the search',
    'The page could not be loaded',
    'The replica may not have the last write',
    'The charge may or may not reach the bank',
    'cannot delete: resource in use',
    'too many active calls',
    'Too many simultaneous connections',
    'Too many API requests',
    'Too many mails per minute',
    "rm: cannot remove 'build': Device or resource busy",
    'The bank cannot currently accept orders',
    'cannot search the index while it is being rebuilt',
    'cannot resize the disk until the last resize has ended',
    'Too many sockets on the system',
    'Service is currently disabled',
    'Re-authentication already in progress',
    'The response body is empty',
    "chart isn't in ready condition",
    'connection is inactive',
    'cannot check out a connection',
    'leader is absent',
    'Too many replicas are lagging',
    'cannot tell whether the payment was made',
  ])('R-1.3 what a service cannot do now, it may do later: %s', (text) => expect(classOf(text)).toBe('transient'));

  it.each([
    'A refund cannot exceed the charge',
    "You can't combine two vouchers",
    'A cart cannot be emptied while it has a reserved seat',
    'Names can not overlap',
    'A guest may not edit invoices',
    'The fee cannot be null: refund',
    'The guest couldn’t be found by that name',
    'The voucher wasn’t found',
    'The date of birth is in the future',
    'The member is inactive',
    'Only available for mobile devices',
    'needs API v2 or newer',
    'This plan needs a commercial licence',
    'too many guests for one table',
    'too many guests per booking',
    'The seat map is not available for this product',
  ])('R-1.3 what nobody can do, nobody can later: %s', (text) => expect(classOf(text)).toBe('permanent'));

  it.each([
    'The instance must be stopped before it can be resized',
    'The pump must be unlocked',
    'Writes are not allowed while the disk is full',
    'The printer is in use',
    'Invalid producer epoch',
    'Expected 3 healthy members, found 1',
    'The battery is too low',
  ])('R-1.3 what a thing is to be first may come: %s', (text) => expect(classOf(text)).toBe('transient'));

  it.each([
    'Start date must be before the end date',
    'The first name must be given first',
    'The volume must be between 0 and 100',
    'Email must be verified before the order is placed',
    'Users must verify their email before they can post',
    'The channel is taken',
    'Address is already in use',
    'Expected 3 arguments, found 1',
    'missing 2 of 5 required fields',
    'Charge too low: minimum is 50 cents',
  ])('R-1.3 what an input is to be is asked again in vain: %s', (text) => expect(classOf(text)).toBe('permanent'));
});
