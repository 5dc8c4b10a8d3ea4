import { createSpillway } from 'spillway';
import { createHarvest, resumeMessages, spillwayMiddleware } from 'spillway/adapters/langchain';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { CANARY, abortLate, nothingSeen, type ModelCall, type Seen } from './frameworks/kit.ts';
import { langChainTools, langChainWith, loadLangChain, scriptedModel, type LangChain } from './frameworks/langchain.ts';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';

let lc: LangChain;
beforeAll(async () => {
  lc = await loadLangChain();
}, SIDE_INSTALL_TIMEOUT_MS);

const GO = { messages: [{ role: 'user', content: 'go' }] };
const agentOf = (
  tools: readonly object[],
  calls: readonly ModelCall[],
  seen: Seen,
  options: GuardLayerOptions = {},
): ReturnType<LangChain['createAgent']> => {
  const middleware = lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage, ...options }));
  return lc.createAgent({ model: scriptedModel(lc, { calls, guarded: true }, seen), tools, middleware: [middleware] });
};
const toolNamed = (name: string, execute: Parameters<LangChain['tool']>[0], schema: z.ZodType = z.object({})): object =>
  lc.tool(execute, { name, description: 'a tool of the test', schema });

describe('spillwayMiddleware', () => {
  it('R-12.3 R-12.4 a failure is a message with the status `error` beside its siblings’, in call order', async () => {
    const seen = nothingSeen();
    const calls = ['bad', 'worded', 'good', 'strict'].map((name, n) => ({ id: `c${n}`, name, input: {} }));
    const { messages } = await agentOf(langChainTools(lc, seen), calls, seen, {
      defaults: { retry: { maxAttempts: 1 } },
    }).invoke(GO);
    const results = messages.filter((message) => message.getType() === 'tool');
    expect(results.map(({ tool_call_id, status }) => [tool_call_id, status])).toEqual([
      ['c0', 'error'],
      ['c1', 'error'],
      ['c2', 'success'],
      ['c3', 'error'],
    ]);
    expect(results.map(({ content }) => content).slice(0, 3)).toEqual([
      'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
      'No city is called Atlantis.',
      'fine',
    ]);
    expect(results.every((message) => message instanceof lc.ToolMessage)).toBe(true);
    expect(seen.shown).not.toContain(CANARY);
  });

  it('R-12.4 input that does not fit: what does not, without a stack trace and without a run', async () => {
    const seen = nothingSeen();
    await langChainWith(lc).run({ guarded: true, calls: [{ id: 'c1', name: 'strict', input: { n: 'one' } }] }, seen);
    const text = seen.told.get('c1') ?? '';
    expect(text).toContain('expected number');
    expect(text).not.toMatch(/node_modules|\.js:\d+|at async/);
    expect(seen.ran).toEqual([]);
  });

  it('R-4.1 the tool’s own signal is aborted at the timeout, and it is tried again where it only reads', async () => {
    const seen = nothingSeen();
    const signals: Array<AbortSignal | undefined> = [];
    const slow = toolNamed('slow', (_input, { signal }) => {
      signals.push(signal);
      return signals.length === 1 ? new Promise(() => undefined) : 'second';
    });
    await agentOf([slow], [{ id: 'c1', name: 'slow', input: {} }], seen, {
      policies: { slow: { effects: 'read', timeoutMs: 100 } },
    }).invoke(GO);
    expect(seen.told.get('c1')).toBe('"second"');
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, false]);
  });

  it('R-8.2 a command that a tool gives passes unchanged', async () => {
    const seen = nothingSeen();
    const command = toolNamed(
      'command',
      () =>
        new lc.Command({
          update: {
            messages: [
              new lc.ToolMessage({ content: 'by command', tool_call_id: 'c1', name: 'command', status: 'error' }),
            ],
          },
        }),
    );
    await agentOf([command], [{ id: 'c1', name: 'command', input: {} }], seen).invoke(GO);
    expect(seen.told.get('c1')).toBe('"by command"');
  });

  it('R-12.3 an aborted run goes on with the messages that its tools gave, of a command its own', async () => {
    const seen = nothingSeen();
    const answer = new lc.ToolMessage({
      content: 'by command',
      tool_call_id: 'c1',
      name: 'command',
      status: 'success',
    });
    const tools = [
      toolNamed('command', () => new lc.Command({ update: { messages: [answer] } })),
      toolNamed('good', () => 'fine'),
      toolNamed('slow', () => new Promise(() => undefined)),
    ];
    const calls = ['command', 'good', 'slow'].map((name, place) => ({ id: `c${place + 1}`, name, input: {} }));
    const controller = new AbortController();
    const harvest = createHarvest();
    const run = harvest.run(() => agentOf(tools, calls, seen).invoke(GO, { signal: controller.signal }));
    await Promise.all([expect(run).rejects.toThrow(/abort/i), abortLate(controller, harvest, calls.length)]);
    expect(harvest.calls.map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'failed']);
    const messages = resumeMessages<{ readonly tool_call_id?: string; readonly content: unknown }>(harvest, []);
    expect(messages.slice(2).map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual([
      ['c1', 'by command'],
      ['c2', 'fine'],
      [
        'c3',
        'The caller canceled the call. The tool may have run and taken effect. Check first whether it took effect. Do not try again unless you are asked to.',
      ],
    ]);
    expect(messages[2]).toBe(answer);
  });

  it('R-3.3 what steers the graph passes through, and is no failure', async () => {
    class Steering extends Error {
      readonly is_bubble_up = true;
    }
    const steering = new Steering('stop here');
    const spillway = createSpillway();
    const failures: unknown[] = [];
    spillway.failures$.subscribe((failure) => failures.push(failure));
    const { wrapToolCall } = spillwayMiddleware({ ToolMessage: lc.ToolMessage, spillway });
    const request = { toolCall: { name: 't', args: {}, id: 'c1' }, tool: {} };
    await expect(wrapToolCall(request, () => Promise.reject(steering))).rejects.toBe(steering);
    expect(failures).toEqual([]);
    expect(spillway.breakers.get('t')?.state.consecutiveFailures).toBe(0);
  });

  it('R-2.9 the class is asked for when it is missing, and options are checked', () => {
    expect(() => spillwayMiddleware({} as never)).toThrow(
      /ToolMessage must be LangChain’s class of that name, not undefined/,
    );
    expect(() => spillwayMiddleware({ ToolMessage: lc.ToolMessage, policies: { t: { timeoutMs: 0 } } })).toThrow(
      /tool t: timeoutMs/,
    );
  });

  it('R-8.2 it is a middleware without `createMiddleware`, too', async () => {
    const seen = nothingSeen();
    const middleware = [spillwayMiddleware({ ToolMessage: lc.ToolMessage, defaults: { retry: { maxAttempts: 1 } } })];
    const agent = lc.createAgent({
      model: scriptedModel(lc, { guarded: true, calls: [{ id: 'c1', name: 'bad', input: {} }] }, seen),
      tools: langChainTools(lc, seen),
      middleware,
    });
    await agent.invoke(GO);
    expect(seen.told.get('c1')).toBe(
      '"The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again."',
    );
  });
});
