// Was: `contact support`, `allow a few seconds` and any `does not` made a failure permanent. Now: only a refusal does.
// Was: `timeout: 550 seconds` was a reply of SMTP's, and no time-out. Now: a reply begins an error's text.
import { classify, toToolError } from 'spillway';
import { describe, expect, it } from 'vitest';

const readingOf = (message: string): readonly unknown[] => {
  const error = toToolError(new Error(message), 'tool');
  return [error.kind, classify(error).classification, error.uncertain];
};

describe('R-1.3 words that refusals and faults share', () => {
  it.each([
    'An error happened. Please contact support if it persists.',
    'Something broke. Our support team has been informed.',
    'Please allow a few seconds before sending again',
    'The server does not appear to be running',
    'The service does not currently have capacity',
    'Worker does not appear to be alive',
    'Data does not load',
    'The device does not wake up',
    'The socket does not open',
    'Element is not clickable at point (10, 20)',
    '0/3 nodes are available: 3 node(s) were unschedulable.',
    'Unassigned shards: 3',
    'Unhandled promise rejection',
    'Format service crashed',
    'Use another replica instead',
    'Message could not be published',
    'The request could not be routed',
    'auth server error',
    'Authentication backend down',
    'A null response was received',
    'Only 2 of 5 nodes can be reached',
    'Transaction canceled, see the specific reasons [TransactionConflict]',
    'a string',
    'The node did not return a hex string',
    'No driver for this ride yet',
    'Node does not have the block yet',
    'Only allows reads during failover',
    'The replica restricts writes during failover',
    'Field index is still building',
    'numeric solver preempted',
    'api key quota reset in 5 s',
  ])('R-1.3 transient: %s', (message) => {
    expect(classify(toToolError(new Error(message), 'tool')).classification).toBe('transient');
  });

  it.each([
    'Streaming is not supported yet',
    'Lists of lists are not allowed yet',
    'The token does not allow this scope',
    'The account does not own this domain',
    'This date is not bookable',
    'Unallocated number',
    'mkdir /data: file exists',
  ])('R-1.3 permanent: %s', (message) => {
    expect(classify(toToolError(new Error(message), 'tool')).classification).toBe('permanent');
  });
});

describe('R-12.1 numbers that a mail server could have sent', () => {
  it.each([
    ['timeout', 'transient', true, 'timeout: 550 seconds elapsed'],
    ['timeout', 'transient', true, 'Timed out after: 530 seconds'],
    ['transport_error', 'transient', true, 'Connection lost at offset: 550 retry later'],
    ['transport_error', 'transient', true, 'Line: 550 - connection reset'],
    ['timeout', 'transient', true, 'auth provider error: timeout'],
    ['transport_error', 'transient', true, 'auth request failed: connection reset'],
    ['execution_error', 'transient', false, 'Error: 530 Origin DNS error'],
    ['execution_error', 'transient', false, '530 Server Error: <none> for url: https://x.example/'],
    ['execution_error', 'permanent', false, '421 Client Error: Misdirected for url: https://x.example/'],
    ['execution_error', 'transient', false, 'shard: 550 unavailable'],
    ['execution_error', 'permanent', false, 'room: 421 - does not exist'],
    ['execution_error', 'permanent', false, '452 characters is too long (max 255)'],
    ['execution_error', 'permanent', false, 'Row: 450 - invalid value'],
    ['execution_error', 'permanent', false, 'Error: 550 Mailbox unavailable'],
    ['execution_error', 'transient', false, 'Message failed: 450 Mailbox busy'],
  ] as const)('R-12.1 %s, %s, uncertain %s: %s', (kind, classification, isUncertain, message) => {
    expect(readingOf(message)).toEqual([kind, classification, isUncertain]);
  });
});
