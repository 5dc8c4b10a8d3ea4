// Was: of several alternatives that a dead process could have come to none was known, and the tool before them paid.
// Now: the last that had begun is gone on with, also after a kill.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type AnyTool, type Spillway } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';

const LEASE_MS = 1_000;
const request = { toolName: 'pay', input: {}, idempotencyKey: 'k' };
const never = (): Promise<never> => new Promise(() => undefined);
const refuses = (): never => {
  throw Object.assign(new Error('gone'), { status: 410 });
};

describe('R-18.4 of several alternatives', () => {
  /** What ran when the process that died had come to one of them, and another went on. */
  const ranBy = async (endsIn: 'second' | 'third'): Promise<readonly string[]> => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const ran: string[] = [];
    const layer = (own: typeof runtime, who: string): Spillway => {
      const made = (name: string, alternatives: readonly string[] = []): AnyTool =>
        tool({
          name,
          policy: { effects: 'mutating', enforcesKey: true, alternatives, dedupe: { leaseMs: LEASE_MS } },
          execute: () => {
            ran.push(`${who} ${name}`);
            if (who === 'B') return 'paid';
            return name === endsIn ? never() : refuses();
          },
        });
      return createSpillway({
        runtime: own,
        store,
        tools: [made('pay', ['second', 'third']), made('second'), made('third')],
      });
    };
    const stopped = virtualRuntime();
    void layer(stopped, 'A').execute(request);
    await stopped.advance(10);
    await runtime.advance(LEASE_MS + 1);
    const result = layer(runtime, 'B').execute(request);
    await runtime.advance(10_000);
    expect((await result).status).toBe('success');
    return ran;
  };

  it('R-18.4 the one that ran is gone on with', async () => {
    expect(await ranBy('second')).toStrictEqual(['A pay', 'A second', 'B second']);
  });

  it('R-18.4 those before it had failed for certain', async () => {
    expect(await ranBy('third')).toStrictEqual(['A pay', 'A second', 'A third', 'B third']);
  });
});

describe('R-18.4 over SQLite, with a process that is killed', () => {
  const begun = (folder: string, who: string): ChildProcessByStdio<null, Readable, null> =>
    spawn(process.execPath, [join(import.meta.dirname, 'paying-elsewhere.ts'), folder, who], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  it('R-18.4 who comes next does not pay beside the alternative that was paying', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-stand-ins-'));
    try {
      const first = begun(folder, 'A');
      await new Promise((resolve) => first.stdout.once('data', resolve));
      first.kill('SIGKILL');
      // It waits for the lease of the first.
      const told = await text(begun(folder, 'B').stdout);
      expect(JSON.parse(told)).toStrictEqual({ status: 'error', code: 'duplicate_in_flight', uncertain: true });
      expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('A elsewhere\n');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);
});
