// Was: any number after the word "code" was a status, so an invalid postal code of 500 was retried as a server's error.
// Now: only a number that is said to be a status is one.
import { expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

it.each(['Invalid airport code: 503', 'Invalid zip code 500', 'Unsupported country code=504'])(
  'R-12.1 "%s" is permanent: the code is the input’s, no status',
  (message) => {
    expect(classify(new Error(message)).classification).toBe('permanent');
  },
);

it.each([
  ['Request failed with status code 503', 'transient'],
  ['Error code: 429 - slow down', 'transient'],
  ['HTTP/1.1 404 Not Found', 'permanent'],
  ['status: 500', 'transient'],
  ['502 Bad Gateway', 'transient'],
] as const)('R-12.1 "%s" states a status', (message, classification) => {
  expect(classify(new Error(message))).toMatchObject({ classification, rule: 'status' });
});

// 429 is what OpenAI answers when the quota is used up: waiting does not fill it.
it('R-1.3 an exhausted quota is permanent, though its status is 429', () => {
  expect(
    classify(new ToolExecutionError('execution_error', '', { status: 429, code: 'insufficient_quota' })),
  ).toMatchObject({ classification: 'permanent', rule: 'code' });
  expect(
    classify(
      Object.assign(new Error('You exceeded your current quota'), {
        status: 429,
        error: { code: 'insufficient_quota' },
      }),
    ).classification,
  ).toBe('permanent');
});
