// Was: a body of JSON whose message nothing reads was final for the names of its fields: `"param":null` of OpenAI's and
// Stripe's errors, `"data":{"column":null}` of GraphQL's. Now: what a value is called says nothing of it.
import { classify, toToolError } from 'spillway';
import { describe, expect, it } from 'vitest';

const classOf = (text: string): string => classify(toToolError(new Error(text), 'tool')).classification;
const BODIES: ReadonlyArray<readonly [of: string, body: (message: string) => unknown]> = [
  ['OpenAI', (message) => ({ error: { message, type: 'server_hiccup', param: null, code: null } })],
  ['Stripe', (message) => ({ error: { code: 'oops', message, param: 'amount', type: 'api_error' } })],
  ['Anthropic', (message) => ({ type: 'error', error: { type: 'api_error', message }, request_id: 'req_1' })],
  ['GraphQL', (message) => ({ errors: [{ message, path: ['user'] }], data: { column: null } })],
  ['FastAPI', (message) => ({ detail: [{ loc: ['body'], msg: message, type: 'hiccup' }] })],
];

describe.each(BODIES)('R-1.3 a body of %s', (_, body) => {
  it.each(['The lamp stays dark', 'Slots are reserved', 'The kettle has gone cold'])(
    'R-1.3 is no refusal for the names of its fields: %s',
    (message) => {
      expect(classOf(JSON.stringify(body(message)))).toBe('transient');
      expect(classOf(JSON.stringify(body(message), null, 2))).toBe('transient');
    },
  );

  it.each(['Unknown customer', 'Invalid date'])('R-1.3 is one for what it says: %s', (message) => {
    expect(classOf(JSON.stringify(body(message)))).toBe('permanent');
  });
});
