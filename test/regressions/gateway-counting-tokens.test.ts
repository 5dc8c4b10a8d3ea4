// Was: `count_tokens` requests were not held to the rate of their key. Now: they count in it, and take no turn's place.
import { expect, it } from 'vitest';
import { asked, kit } from '../gateway/kit.ts';

it('R-13.5 count_tokens is held by the rate of its key, and takes no place', async () => {
  const gate = await kit({ limits: { maxTurns: 1, rate: { requests: 2, windowMs: 60_000 } } });
  gate.upstream.answer(({ url }) => (url === '/v1/messages' ? {} : { body: '{"input_tokens":7}' }));
  const count = (key: string): Promise<Response> =>
    fetch(`${gate.url}/v1/messages/count_tokens`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: JSON.stringify(asked),
    });
  expect((await count('test-key')).status).toBe(200);
  expect((await gate.post(asked)).status).toBe(200);
  const refused = await count('test-key');
  expect([refused.status, refused.headers.get('retry-after')]).toStrictEqual([429, '30']);
  expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
  expect((await gate.post(asked)).status).toBe(429);
  expect((await count('other')).status).toBe(200);
  await gate.close();
});
