// Was: a service of authentication that could not be reached counted as a refusal where the text ended with its name.
// Now: it is temporary, wherever the name stands.
import { expect, it } from 'vitest';
import { classify, toToolExecutionError } from 'spillway';

it.each([
  'cannot connect to the authentication service',
  'lost the connection to the authentication servers',
  'the authentication provider, which is down',
])('R-1.3 %s: may be tried again', (text) => {
  expect(classify(toToolExecutionError(new Error(text))).classification).toBe('transient');
});

it.each(['authentication failed', 'could not authenticate'])('R-1.3 %s: may not', (text) => {
  expect(classify(toToolExecutionError(new Error(text))).classification).toBe('permanent');
});
