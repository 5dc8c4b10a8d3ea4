import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Processes of their own, on real timers: whether one ends by itself can be seen in no other way. */
const index = pathToFileURL(join(import.meta.dirname, '../../src/index.ts')).href;
/** A process that is kept by the hung tool would live for a minute. */
const KILL_AFTER_MS = 45_000;
/**
 * What waits for the hung tool takes longer, up to a minute; when exactly is a matter of virtual time, since this
 * machine may be busy.
 */
const WAITED_FOR_MS = 30_000;
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly out: Readonly<Record<string, unknown>>;
}

const COMMON = `
import { createSpillway, plan } from '${index}';
// One that never looks at its signal, and one that answers in 50 ms.
const hung = (policy) => ({ name: 'hung', policy, execute: () => new Promise(() => undefined) });
const sibling = { name: 'sibling', execute: () => new Promise((resolve) => setTimeout(resolve, 50, 'value')) };
const once = { maxAttempts: 1 };
const startedAtMs = performance.now();
const sinceMs = () => performance.now() - startedAtMs;
const tell = (what) => console.log(JSON.stringify(what));
const settled = (layer, planned, then = () => undefined) => layer.turn(planned).subscribe((event) => {
  if (event.source === 'turn' && event.type === 'settled') tell({ afterMs: sinceMs(), states: event.result.nodes.map(({ state }) => state), values: event.result.values });
  then(event);
});
`;

const run = (name: string, script: string): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const path = join(folder, `${name}.ts`);
    writeFileSync(path, COMMON + script);
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', path],
      { timeout: KILL_AFTER_MS, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        if (stderr !== '') return reject(new Error(stderr));
        const lines = stdout
          .trim()
          .split('\n')
          .filter((line) => line !== '');
        resolve({
          code: error === null ? 0 : Number(error.code ?? -1),
          out: JSON.parse(lines.at(-1) ?? '{}') as Ended['out'],
        });
      },
    );
  });

describe('R-4.1 real processes', () => {
  it('R-4.1 a tool that never looks at its signal is timed out beside a sibling that answers, and the process ends by itself', async () => {
    const { code, out } = await run(
      'attempt',
      `
      settled(createSpillway({}), plan.from([{ id: 'h', tool: hung({ timeoutMs: 200, retry: once }) }, { id: 's', tool: sibling }]));
    `,
    );
    expect(code).toBe(0);
    expect(out).toMatchObject({ states: ['failed', 'succeeded'], values: { s: 'value' } });
    expect(out['afterMs']).toBeGreaterThanOrEqual(199);
    expect(out['afterMs']).toBeLessThan(WAITED_FOR_MS);
  });

  it('R-4.1 the same for a caller that unsubscribes', async () => {
    const { code, out } = await run(
      'unsubscribed',
      `
      const layer = createSpillway({ tools: [hung({ timeoutMs: 60_000 })] });
      const turn = settled(layer, plan.from([{ id: 'h', tool: 'hung' }, { id: 's', tool: sibling }]));
      const call = layer.call({ toolName: 'hung' }).subscribe();
      setTimeout(() => {
        turn.unsubscribe();
        call.unsubscribe();
        tell({ afterMs: sinceMs() });
      }, 200);
    `,
    );
    expect(code).toBe(0);
    expect(out['afterMs']).toBeLessThan(WAITED_FOR_MS);
  });

  it.each(['detach', 'abort'])(
    'R-4.4 a turn’s deadline, %s: the hung tool does not keep the process',
    async (onDeadline) => {
      const { code, out } = await run(
        `deadline-${onDeadline}`,
        `
      settled(createSpillway({}), plan.from([{ id: 'h', tool: hung({ timeoutMs: 60_000 }) }, { id: 's', tool: sibling }], { timeoutMs: 3_000, onDeadline: '${onDeadline}' }));
    `,
      );
      expect(code).toBe(0);
      expect(out).toMatchObject({ states: ['timed_out', 'succeeded'], values: { s: 'value' } });
      expect(out['afterMs']).toBeGreaterThanOrEqual(2_999);
      expect(out['afterMs']).toBeLessThan(WAITED_FOR_MS);
    },
  );

  it('R-4.4 the turn’s own deadline does keep the process: nothing else might', async () => {
    const { code, out } = await run(
      'kept',
      `
      settled(createSpillway({}), plan.from([{ id: 'h', tool: hung({ timeoutMs: 60_000 }) }], { timeoutMs: 2_000 }));
    `,
    );
    expect(code).toBe(0);
    expect(out).toMatchObject({ states: ['timed_out'] });
  });

  it('R-2.1 a backoff keeps the process, in a call and in a turn', async () => {
    const flaky = `
      let attempts = 0;
      const flaky = { name: 'flaky', policy: { retry: { initialDelayMs: 100 } }, execute: () => {
        if (attempts++ === 0) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        return 'ok';
      } };
    `;
    const turn = await run(
      'backoff-turn',
      `${flaky} settled(createSpillway({}), plan.from([{ id: 'f', tool: flaky }]));`,
    );
    expect(turn.out).toMatchObject({ states: ['succeeded'], values: { f: 'ok' } });
    const call = await run(
      'backoff-call',
      `${flaky} tell((await createSpillway({ tools: [flaky] }).execute({ toolName: 'flaky' })).output);`,
    );
    expect(call).toMatchObject({ code: 0, out: { content: 'ok' } });
  });

  it('R-4.4 close() ends detached work, and the process with it', async () => {
    const { code, out } = await run(
      'closed',
      `
      const held = { name: 'held', policy: { timeoutMs: 60_000 }, execute: (_input, { signal }) => new Promise((_resolve, reject) => {
        const timer = setInterval(() => undefined, 1_000);
        signal.addEventListener('abort', () => { clearInterval(timer); tell({ aborted: true }); reject(signal.reason); });
      }) };
      const layer = createSpillway({});
      settled(layer, plan.from([{ id: 'h', tool: held }], { timeoutMs: 3_000 }), (event) => {
        if (event.source === 'turn' && event.type === 'settled') void layer.close();
      });
    `,
    );
    expect(code).toBe(0);
    expect(out).toStrictEqual({ aborted: true });
  });
});
