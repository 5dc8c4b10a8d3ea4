// Was: a `tool()` without `effects` was `read`, and nobody was told.
// Now: it still is, and `spillway.warnings` names each.
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type ToolPolicy } from 'spillway';

const named = (name: string, policy?: ToolPolicy) =>
  tool({ name, ...(policy === undefined ? {} : { policy }), execute: () => name });
const once = { retry: { maxAttempts: 1 } } as const;
const effectsWarnings = (warnings: readonly string[]): string[] =>
  warnings.filter((warning) => warning.includes('effects'));

describe('R-2.5 a tool that declares no effects', () => {
  it('R-2.5 is named in the warnings of its layer, each once, with what to do', () => {
    const tools = [
      named('silent'),
      named('quiet', { ...once, effects: undefined as never }),
      named('search', { effects: 'read' }),
      named('pay', { effects: 'mutating' }),
    ];
    const warned = effectsWarnings(createSpillway({ tools }).warnings);
    expect(warned).toHaveLength(2);
    expect(warned[0]).toBe(
      "tool silent: it declares no effects and counts as read, so it is run again after a failure even if it may have taken effect; give its policy effects: 'read' or effects: 'mutating'",
    );
    expect(warned[1]).toContain('tool quiet: it declares no effects');
  });

  it('R-2.5 is not named where the layer’s defaults say it for all', () => {
    for (const effects of ['read', 'mutating'] as const)
      expect(effectsWarnings(createSpillway({ tools: [named('silent')], defaults: { effects } }).warnings)).toEqual([]);
  });

  it('R-2.5 of a provider is named too', () => {
    const provider = {
      name: 'own',
      tools: [named('own.silent', once), named('own.search', { ...once, effects: 'read' })],
      close: async () => undefined,
    };
    expect(createSpillway({ providers: [provider] }).warnings).toEqual([
      expect.stringContaining('tool own.silent: it declares no effects'),
    ]);
  });

  it('R-2.5 counts as read: a bare throw is tried again', async () => {
    let runs = 0;
    const silent = tool({
      name: 'silent',
      policy: { retry: { maxAttempts: 3, initialDelayMs: 1 } },
      execute: () => {
        runs++;
        throw new Error('it broke');
      },
    });
    const spillway = createSpillway({ tools: [silent] });
    await spillway.execute({ toolName: 'silent' });
    expect(runs).toBe(3);
  });
});
