// Was: what a failed request had reached was used more than once, for requests that only looked the same. Now: the same
// request goes on from its latest failure, once, and for a while.
import { createSpillway, tool } from 'spillway';
import { anthropicGateway, memoryConversationState } from 'spillway/gateway/anthropic';
import { beforeEach, describe, expect, it } from 'vitest';
import { liveRuntime } from '../../src/runtime.ts';
import { asked } from '../gateway/kit.ts';
import { use, wholeOf, type Reply } from '../gateway/upstream.ts';

let ran = 0;
const clock = tool({ name: 'clock', execute: () => `tick ${++ran}` });
const spillway = createSpillway({ tools: [clock] });
const calling: Reply = { blocks: [use('toolu_1', 'clock')], stop: 'tool_use' };

describe('a request that is the same as one that failed', () => {
  let wallMs = 0;
  let replies: Array<Reply | number> = [];
  const runtime = { ...liveRuntime, now: () => liveRuntime.now(), wallNow: () => wallMs };
  let gateway = anthropicGateway({ upstream: 'http://upstream' });
  beforeEach(() => {
    ran = 0;
    wallMs = 1_700_000_000_000;
    const fetch = (): Promise<Response> => {
      const reply = replies.shift() ?? {};
      return Promise.resolve(
        new Response(typeof reply === 'number' ? '{}' : wholeOf(reply), {
          status: typeof reply === 'number' ? reply : 200,
          headers: { 'content-type': 'application/json' },
        }),
      );
    };
    gateway = anthropicGateway({
      upstream: 'http://upstream',
      fetch,
      tools: [clock],
      spillway,
      state: memoryConversationState(),
      upstreamRetry: { maxAttempts: 1 },
      runtime,
    });
  });
  const ask = async (again = false): Promise<number> => {
    const response = await gateway.fetch(
      new Request('http://gateway/v1/messages', {
        method: 'POST',
        body: JSON.stringify(asked),
        headers: again ? { 'x-stainless-retry-count': '1' } : {},
      }),
    );
    return response.status;
  };

  it('R-13.4 goes on from there, once', async () => {
    replies = [calling, 529, {}];
    expect([await ask(), await ask(true), ran]).toStrictEqual([529, 200, 1]);
    // The same question later: by the client’s own word a retry, and as a new one.
    replies = [calling, {}, calling, {}];
    expect([await ask(true), ran]).toStrictEqual([200, 2]);
    expect([await ask(), ran]).toStrictEqual([200, 3]);
  });

  it('R-13.4 goes on from the latest of several failures', async () => {
    replies = [calling, 529];
    await ask();
    wallMs += 600_000;
    replies = [{ blocks: [use('toolu_2', 'clock')], stop: 'tool_use' }, 529];
    expect([await ask(true), ran]).toStrictEqual([529, 2]);
    replies = [{}];
    expect([await ask(true), ran, replies.length]).toStrictEqual([200, 2, 0]);
  });

  it('R-13.4 knows nothing of it after a while', async () => {
    replies = [calling, 529];
    await ask();
    wallMs += 1_200_000;
    replies = [calling, {}];
    expect([await ask(true), ran]).toStrictEqual([200, 2]);
  });
});
