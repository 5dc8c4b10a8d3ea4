// Was: LangChain's retries repeated a guarded payment that may have been made, and of two guards of one Genkit run the
// first ran twice and the second never. Now: a failure says that it is not to be retried, and each guard has a name.
import { createSpillway } from 'spillway';
import { spillwayMiddleware } from 'spillway/adapters/genkit';
import { guardTools } from 'spillway/adapters/langchain';
import { beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { loadGenkit, scriptedAi } from '../adapters/frameworks/genkit.ts';
import { PAY_SCRIPT, nothingSeen } from '../adapters/frameworks/kit.ts';
import { loadLangChain, scriptedModel } from '../adapters/frameworks/langchain.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

beforeAll(async () => {
  await loadLangChain();
  await loadGenkit();
}, SIDE_INSTALL_TIMEOUT_MS);

it('R-2.5 LangChain’s own retries do not repeat a guarded call', async () => {
  const lc = await loadLangChain();
  const paid = async (guard: (tools: object[]) => object[]): Promise<number> => {
    let times = 0;
    const pay = lc.tool(
      () => {
        times++;
        return Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
      },
      { name: 'pay', description: 'pays', schema: z.object({}) },
    );
    const middleware = [lc.toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 0 })];
    await lc
      .createAgent({ model: scriptedModel(lc, PAY_SCRIPT, nothingSeen()), tools: guard([pay]), middleware })
      .invoke({ messages: [{ role: 'user', content: 'go' }] });
    return times;
  };
  expect([await paid((tools) => tools), await paid((tools) => guardTools(tools))]).toEqual([3, 1]);
});

it('R-2.9 two guards of one Genkit run both guard', async () => {
  const genkit = await loadGenkit();
  const { generateMiddleware, z: own } = genkit;
  const ai = scriptedAi(genkit, PAY_SCRIPT, nothingSeen());
  const pay = ai.defineTool({ name: 'pay', description: 'pays', inputSchema: own.object({}) }, () =>
    Promise.resolve('paid'),
  );
  const begun: string[] = [];
  const guardNamed = (name: string): object => {
    const spillway = createSpillway();
    spillway.trace$.subscribe(({ type }) => type === 'call_started' && begun.push(name));
    return spillwayMiddleware({ generateMiddleware, spillway })();
  };
  await ai.generate({ model: ai.model, prompt: 'go', tools: [pay], use: [guardNamed('outer'), guardNamed('inner')] });
  expect(begun).toEqual(['outer', 'inner']);
});
