// Was: timeouts, refusals and quotas that tools state in plain words got the wrong kind or class. Now: they are read
// for what they say, and names that hold such words are not.
// Was: the number of a reply of SMTP's or FTP's was taken for an HTTP status. Now: 4xx is temporary, 5xx permanent.
import { classify, toToolError } from 'spillway';
import { describe, expect, it } from 'vitest';
import { toLlmError } from '../../src/errors/llm.ts';

describe('R-12.1 what tools say in plain words', () => {
  it.each([
    ['timeout', 'transient', 'No response from server after 30 seconds'],
    ['timeout', 'transient', 'The airline system did not respond in time'],
    ['timeout', 'transient', 'The search took longer than 10s'],
    ['execution_error', 'permanent', 'Your API key has been revoked'],
    ['execution_error', 'permanent', 'Please log in to continue'],
    ['execution_error', 'permanent', 'Your trial has ended'],
    ['execution_error', 'permanent', 'Passenger count cannot exceed 9'],
    ['execution_error', 'permanent', 'The date 2020-01-01 is in the past'],
    ['execution_error', 'permanent', 'The requested resource has been permanently removed'],
    ['execution_error', 'permanent', 'Not Acceptable'],
    // Replies of mail and file servers.
    ['execution_error', 'transient', '451 4.3.0 Error: queue file write error'],
    ['execution_error', 'transient', 'Message failed: 450 4.2.2 Mailbox over quota'],
    ['execution_error', 'transient', '421 There are too many connections from your internet address.'],
    ['execution_error', 'permanent', '530 Login incorrect.'],
    ['execution_error', 'permanent', '554 5.7.1 Service unavailable; client host blocked'],
    ['execution_error', 'permanent', '451 Unavailable For Legal Reasons'],
    ['execution_error', 'transient', 'HTTP status: 530 Origin DNS error'],
    // Names, not faults.
    ['execution_error', 'permanent', 'File network.txt not found'],
    ['execution_error', 'permanent', 'Table "timeouts" does not exist'],
  ])('%s, %s: %s', (kind, classification, message) => {
    const error = toToolError(new Error(message), 'tool');
    expect([error.kind, classify(error).classification]).toEqual([kind, classification]);
  });

  it('a spend limit is a quota', () => {
    expect(toLlmError(new Error('Project has exceeded its spend limit'))).toMatchObject({
      kind: 'quota_exceeded',
      classification: 'permanent',
    });
  });
});
