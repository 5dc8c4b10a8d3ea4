// Was: quoted names, URLs and paths were read as what an error says, and flags and nested codes were passed over. Now:
// fields come first, and quotations do not count.
import { describe, expect, it } from 'vitest';
import { toToolError } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { because } from '../errors/field/item.ts';
import { aws, error } from '../errors/thrown.ts';

const told = (thrown: unknown): string => {
  const typed = toToolError(thrown, 'tool');
  return `${typed.kind} ${classify(typed).classification}`;
};

describe('R-12.1 fields come before words', () => {
  it.each<[string, unknown]>([
    ['execution_error permanent', error('Something went wrong, try again later', { retryable: false })],
    ['execution_error transient', error('The value is invalid until the cache is filled', { isRetryable: true })],
    // A status says more than a flag beside it.
    ['execution_error permanent', error('x', { status: 404, retryable: true })],
    // AWS sends a socket that stood still as a 400.
    [
      'timeout transient',
      aws(
        'RequestTimeout',
        400,
        'Your socket connection to the server was not read from or written to within the timeout period.',
      ),
    ],
    ['execution_error permanent', { errors: [{ message: 'x', extensions: { code: 'BAD_USER_INPUT' } }] }],
    ['execution_error permanent', error('x', { data: { code: 'NOT_FOUND', httpStatus: 404 } })],
    ['execution_error permanent', error('could not save', { parent: error('x', { code: '23505' }) })],
    ['transport_error transient', because('not found', error('x', { code: 'ECONNRESET' }))],
  ])('%s', (expected, thrown) => expect(told(thrown)).toBe(expected));
});

describe('R-12.1 what a sentence quotes is not what it says', () => {
  it.each([
    ['execution_error permanent', 'Playlist "Network errors" not found'],
    ['execution_error permanent', 'Playlist “Rate limits” not found'],
    ['execution_error permanent', "Street 'Timeout Road' is not in the register"],
    ['execution_error permanent', 'Cannot find the file /var/log/timeouts/504.log'],
    ['execution_error permanent', 'https://example.com/rate-limit/429 is not an allowed domain'],
    // What it reports is.
    ['transport_error transient', 'The weather tool said: "connection refused"'],
    ['execution_error transient', '{"message":"API rate limit exceeded"}'],
    ['timeout transient', "The tool didn't answer: 'request timed out'"],
  ])('%s: %s', (expected, text) => expect(told(text)).toBe(expected));
});

describe('R-12.1 a service that refuses can fail like any other', () => {
  it.each([
    ['timeout transient', 'authentication service timed out'],
    ['execution_error transient', 'authentication service is temporarily unavailable'],
    ['execution_error permanent', 'authentication failed'],
  ])('%s: %s', (expected, text) => expect(told(text)).toBe(expected));
});
