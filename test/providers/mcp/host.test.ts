import { BehaviorSubject, NEVER, Observable, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway } from '../../../src/spillway.ts';
import { mcpStdioProvider } from '../../../src/providers/mcp-stdio.ts';
import { restProvider } from '../../../src/providers/rest.ts';
import { everything, run, toolOf, until } from '../support.ts';
import { faults, ledger } from '../../mcp-proxy/kit.ts';

const names = ({ tools }: { readonly tools: readonly { readonly name: string }[] }): readonly string[] =>
  tools.map(({ name }) => name);
const ASKING = [
  'everything.trigger-elicitation-request',
  'everything.trigger-sampling-request',
  'everything.get-roots-list',
];

describe('R-12.5 a host that answers its servers', () => {
  it('R-12.5 without handlers, says which tools the server keeps to itself, and what to give', async () => {
    const provider = await everything();
    expect(names(provider).filter((name) => ASKING.includes(name))).toEqual([]);
    const hidden = await provider.hiddenTools();
    expect(hidden.map(({ toolName }) => toolName)).toEqual(expect.arrayContaining(ASKING));
    const reasons = new Map(hidden.map(({ toolName, reason }) => [toolName, reason]));
    expect(reasons.get(ASKING[0] ?? '')).toMatch(/elicitation.*give handlers\.elicit$/);
    expect(reasons.get(ASKING[1] ?? '')).toMatch(/sampling.*give handlers\.sample$/);
    expect(reasons.get(ASKING[2] ?? '')).toMatch(/roots.*give handlers\.roots$/);
    await provider.close();
  });

  it('R-12.5 elicitation, sampling and roots are answered by its handlers, as values or streams', async () => {
    const provider = await everything({
      handlers: {
        elicit: ({ message }) => of({ action: 'accept' as const, content: { name: message === '' ? '' : 'Ada' } }),
        sample: async ({ maxTokens }) => ({
          model: 'm',
          role: 'assistant',
          content: { type: 'text', text: `at most ${maxTokens}` },
        }),
        roots: [{ uri: 'file:///one', name: 'one' }],
      },
    });
    await until(() => ASKING.every((name) => names(provider).includes(name)));
    expect(await provider.hiddenTools()).toEqual([]);
    expect(JSON.stringify(await run(provider, ASKING[0] ?? '', {}))).toContain('Ada');
    const sampled = await run(provider, ASKING[1] ?? '', { prompt: 'x', maxTokens: 7 });
    expect(JSON.stringify(sampled)).toContain('at most 7');
    expect(JSON.stringify(await run(provider, ASKING[2] ?? '', {}))).toContain('file:///one');
    await provider.close();
  });

  it('R-12.5 roots that change are told to the server', async () => {
    const roots$ = new BehaviorSubject([{ uri: 'file:///one' }]);
    const provider = await everything({ handlers: { roots: roots$ } });
    await until(() => names(provider).includes(ASKING[2] ?? ''));
    expect(JSON.stringify(await run(provider, ASKING[2] ?? '', {}))).toContain('file:///one');
    roots$.next([{ uri: 'file:///two' }]);
    let listed = '';
    for (let tries = 0; tries < 100 && !listed.includes('file:///two'); tries++)
      listed = JSON.stringify(await run(provider, ASKING[2] ?? '', {}));
    expect(listed).toContain('file:///two');
    await provider.close();
  });

  it('R-4.7 a person may take longer than the tool’s timeout, and the tool itself may not', async () => {
    using kept = ledger();
    const { place } = faults(kept);
    if (!('command' in place)) throw new TypeError('no command');
    let answer: (() => void) | undefined;
    const provider = await mcpStdioProvider({
      name: 's',
      ...place,
      handlers: {
        elicit: () =>
          new Observable((subscriber) => {
            answer = () => {
              subscriber.next({ action: 'accept', content: { sure: true } });
              subscriber.complete();
            };
          }),
      },
    });
    const spillway = createSpillway({ providers: [provider], defaults: { timeoutMs: 300, retry: { maxAttempts: 1 } } });
    const asked = spillway.execute({ toolName: 's.ask', input: {} });
    await until(() => answer !== undefined);
    const hung = await spillway.execute({ toolName: 's.pay', input: { amount: 1, then: 'hang' } });
    expect(hung.error?.code).toBe('timeout');
    answer?.();
    expect((await asked).output?.content).toBe('{"action":"accept","content":{"sure":true}}');
    await spillway.close();
  });

  it('R-12.5 a question whose call is canceled takes its handler along', async () => {
    using kept = ledger();
    const { place } = faults(kept);
    if (!('command' in place)) throw new TypeError('no command');
    let signal: AbortSignal | undefined;
    const handlers = { elicit: (_: unknown, given: AbortSignal) => ((signal = given), NEVER) };
    const provider = await mcpStdioProvider({ name: 's', ...place, handlers });
    void toolOf(provider, 's.ask');
    const spillway = createSpillway({ providers: [provider] });
    const asked = spillway.execute({ toolName: 's.ask', input: {} });
    await until(() => signal !== undefined);
    await spillway.close();
    expect((await asked).error?.code).toBe('canceled');
    await until(() => signal?.aborted === true);
  });

  it('R-2.9 what is no handler is refused, naming what it should be', async () => {
    const handlers = { elicit: 'yes' as never };
    await expect(everything({ handlers })).rejects.toThrow('handlers.elicit must be a function that gives the answer');
    await expect(everything({ handlers: { elicits: () => undefined } as never })).rejects.toThrow(/elicits/);
  });
});

describe('R-12.6 what the host says of one tool of a provider', () => {
  it('R-12.6 goes before what the server says of it', async () => {
    const provider = await everything({ tools: { echo: { policy: { timeoutMs: 1_234, effects: 'mutating' } } } });
    expect(toolOf(provider, 'everything.echo').policy).toMatchObject({ timeoutMs: 1_234, effects: 'mutating' });
    expect(toolOf(provider, 'everything.get-sum').policy).not.toHaveProperty('timeoutMs');
    await provider.close();
  });

  it('R-12.6 a tool that is not there, and a key that there is not, are refused with what there is', async () => {
    await expect(everything({ tools: { ecko: { policy: {} } } })).rejects.toThrow(
      /names "ecko", which is not there; there is echo, /,
    );
    await expect(everything({ tools: { echo: { polcy: {} } as never } })).rejects.toThrow(/polcy/);
  });

  it('R-12.6 the same over REST', () => {
    const manifest = {
      name: 'api',
      base_url: 'https://api.example.com',
      tools: [{ id: 'get', url: '/x', timeout_ms: 9 }],
    };
    const { tools } = restProvider(manifest, { tools: { get: { policy: { timeoutMs: 7 } } } });
    expect(tools[0]?.policy).toMatchObject({ timeoutMs: 7, effects: 'read' });
    expect(() => restProvider(manifest, { tools: { put: {} } })).toThrow(
      /names "put", which is not there; there is get/,
    );
  });
});
