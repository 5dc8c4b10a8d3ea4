import { Agent, run, tool, toolNamespace, type Tool } from '@openai/agents-core';
import { ToolFailure, guardTools } from 'spillway/adapters/openai-agents';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { CANARY, nothingSeen, type Seen } from './frameworks/kit.ts';
import { openaiAgents, scriptedModel } from './frameworks/openai-agents.ts';

const fields = {
  description: 'a tool of the test',
  parameters: z.object({ city: z.string() }),
  errorFunction: null,
} as const;
const CALL = { id: 'c1', name: 't', input: { city: 'Oulu' } };
const fast = { retry: { initialDelayMs: 1, jitterPercent: 0 } };

/** What the model is told of one call of `t`. */
const told = async (tools: Tool[], input: unknown = CALL.input): Promise<Seen> => {
  const seen = nothingSeen();
  const script = { guarded: true, calls: [{ ...CALL, input }] };
  await run(new Agent({ name: 'test', tools, model: scriptedModel(script, seen) }), 'go');
  return seen;
};
const invoke = (one: object | undefined, input = '{"city":"Oulu"}'): Promise<unknown> =>
  (one as { invoke(context: unknown, input: string): Promise<unknown> }).invoke({}, input);
const hang = (): Promise<never> => new Promise(() => undefined);
const textOf = ({ told: texts }: Seen): string => (JSON.parse(texts.get('c1') ?? '{}') as { text?: string }).text ?? '';

describe('guardTools for OpenAI Agents', () => {
  it('R-12.4 other members stay as they are, symbols included, and hosted tools are the same objects', () => {
    const search = { type: 'hosted_tool', name: 'web_search', providerData: {} };
    const [named] = toolNamespace({
      name: 'travel',
      description: 'travelling',
      tools: [tool({ ...fields, name: 't', execute: () => 1 })],
    });
    if (named === undefined) throw new Error('no tool was made');
    const [hosted, guarded] = guardTools<object>([search, named]);
    expect(hosted).toBe(search);
    expect({ ...guarded, invoke: undefined }).toEqual({ ...named, invoke: undefined });
    expect(Object.getOwnPropertySymbols(guarded ?? {})).toEqual(Object.getOwnPropertySymbols(named));
  });

  it('R-12.1 with `errorFunction: null` what was thrown is seen: one is tried again, the other is not', async () => {
    let resets = 0;
    const reset = tool({
      ...fields,
      name: 't',
      execute: () =>
        ++resets < 3 ? Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })) : 'third',
    });
    expect(textOf(await told(guardTools<Tool>([reset], { defaults: fast })))).toBe('third');
    let missing = 0;
    const gone = tool({
      ...fields,
      name: 't',
      execute: () => Promise.reject(Object.assign(new Error(`gone ${CANARY} ${++missing}`), { status: 404 })),
    });
    const seen = await told(guardTools<Tool>([gone], { defaults: fast }));
    expect([textOf(seen), missing, seen.shown.includes(CANARY)]).toEqual([
      'The tool ran and failed. Its service answered 404: what was asked for was not found. Do not try again with the same input: correct it first.',
      1,
      false,
    ]);
  });

  it('R-12.1 bad input is known as such, runs nothing and is not tried again', async () => {
    const ran: unknown[] = [];
    const made = (errorFunction?: null): Tool =>
      tool({
        ...fields,
        ...(errorFunction === null ? {} : { errorFunction: undefined as never }),
        name: 't',
        execute: (input) => ran.push(input),
      });
    const plain = 'The input does not fit the tool’s schema. Do not try again with the same input: correct it first.';
    for (const one of [made(null), made()]) {
      const tools = guardTools<Tool>([one], { defaults: fast });
      expect(textOf(await told(tools, { city: 5 }))).toBe(plain);
      // The runner answers for what is no JSON; another caller may not.
      expect(await invoke(tools[0], '{"city":')).toBe(plain);
    }
    expect(ran).toEqual([]);
  });

  it('R-12.1 a tool made without it is known to fail, and one that says so itself is believed', async () => {
    const { errorFunction: _none, ...without } = fields;
    const swallowing = tool({ ...without, name: 't', execute: () => Promise.reject(new Error(CANARY)) });
    expect(textOf(await told(guardTools<Tool>([swallowing], { defaults: fast })))).toBe(
      'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    );
    const worded = tool({
      ...without,
      name: 't',
      errorFunction: () => 'sold out',
      execute: () => Promise.reject(new Error(CANARY)),
    });
    expect(textOf(await told(guardTools<Tool>([worded], { defaults: fast })))).toBe('sold out');
  });

  it('R-12.4 a safe message reaches the model verbatim', async () => {
    const seen = nothingSeen();
    await openaiAgents.run({ guarded: true, calls: [{ id: 'c1', name: 'worded', input: {} }] }, seen);
    expect(textOf(seen)).toBe('No city is called Atlantis.');
    expect(seen.shown).not.toContain(CANARY);
  });

  it('R-12.4 a tool with an output schema gives what its error function makes of the failure, or throws it', async () => {
    const made = (errorFunction: ((context: unknown, error: unknown) => { degrees: number }) | null): object =>
      tool({
        ...fields,
        name: 't',
        outputSchema: z.object({ degrees: z.number() }),
        errorFunction,
        execute: hang,
      } as never);
    const policy = { defaults: { timeoutMs: 20 } };
    const errors: unknown[] = [];
    const [answering] = guardTools([made((_context, error) => ({ degrees: errors.push(error) }))], policy);
    expect(await invoke(answering)).toEqual({ degrees: 1 });
    expect(errors[0]).toBeInstanceOf(ToolFailure);
    await expect(invoke(guardTools([made(null)], policy)[0])).rejects.toMatchObject({ kind: 'timeout' });
  });

  it('R-4.2 an aborted call throws the reason of its signal, as the runner’s own do, and its tool’s signal is aborted', async () => {
    const signals: Array<AbortSignal | undefined> = [];
    const hung = tool({
      ...fields,
      name: 't',
      execute: (_input, _context, details) => {
        signals.push(details?.signal);
        return hang();
      },
    });
    const controller = new AbortController();
    const script = { guarded: true, calls: [CALL] };
    const running = run(
      new Agent({ name: 'test', tools: guardTools<Tool>([hung]), model: scriptedModel(script, nothingSeen()) }),
      'go',
      { signal: controller.signal },
    );
    const leave = async (): Promise<void> => {
      await vi.waitUntil(() => signals.length === 1, { timeout: 60_000 });
      controller.abort(new Error('the user left'));
    };
    await Promise.all([expect(running).rejects.toThrow('the user left'), leave()]);
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  });

  it('R-4.2 so does one that is called without the runner', async () => {
    const [hung] = guardTools([tool({ ...fields, name: 't', execute: hang })]);
    const reason = new Error('a sibling failed');
    await expect(hung?.invoke({} as never, '{"city":"Oulu"}', { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
  });

  it('R-2.9 a policy for a tool that is not there is refused', () => {
    expect(() => guardTools([tool({ ...fields, name: 't', execute: () => 1 })], { policies: { u: {} } })).toThrow(
      /policies has no option "u"; it takes t/,
    );
  });
});
