import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { root } from './consumer.ts';

/** What one program of a user, bundled with the package's own modules, writes. */
const written = async (names: string, program: string): Promise<unknown> => {
  const contents = `import { createSpillway, tool, ${names} } from './src/index.ts';
    import { memoryStore } from './src/stores/memory.ts';
    ${program}`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    external: ['node:*'],
  });
  const folder = await mkdtemp(join(tmpdir(), 'bundle-'));
  try {
    const file = join(folder, 'program.mjs');
    await writeFile(file, outputFiles[0]?.contents ?? '');
    return JSON.parse((await promisify(execFile)(process.execPath, [file], { cwd: folder })).stdout);
  } finally {
    await rm(folder, { recursive: true });
  }
};

/** Two layers over one store; the tool fails in the first until its breaker opens, and the second is asked then. */
const TWO_LAYERS = `
  const down = tool({ name: 'down', policy: { breaker: { failureThreshold: 1 }, retry: { maxAttempts: 1 } },
    execute: () => { throw Object.assign(new Error('reset'), { code: 'ECONNRESET' }); } });
  const ask = async (store) => {
    const layers = [1, 2].map(() => createSpillway({ tools: [down], store, shareBreakers: true }));
    const kinds = [];
    for (const layer of layers) kinds.push((await layer.execute({ toolName: 'down', input: {} })).error.code);
    const turns = await layers[0].resume();
    for (const layer of layers) await layer.close();
    return [...kinds, turns.length];
  };`;
const MISSING =
  'is not in this bundle: redisStore, sqliteStore and, for resume, plan bring it along; ' +
  'hand a store of another kind over as acrossProcesses(store)';

describe('a bundle', () => {
  it('R-3.10 shares breakers and resumes over a store of SQLite, with nothing said', async () => {
    const program = `import { sqliteStore } from './src/stores/sqlite.ts';
      ${TWO_LAYERS}
      console.log(JSON.stringify(await ask(sqliteStore('calls.db'))));`;
    expect(await written('liveRuntime', program)).toEqual(['transport_error', 'circuit_open', 0]);
  });

  it('R-3.10 does so over a store of another kind that it was told of', async () => {
    const program = `${TWO_LAYERS} console.log(JSON.stringify(await ask(acrossProcesses(memoryStore()))));`;
    expect(await written('acrossProcesses', program)).toEqual(['transport_error', 'circuit_open', 0]);
  });

  it('R-3.10 R-18.6 says what is missing over one that it was not told of, before anything runs', async () => {
    const program = `const said = (error) => error.name + ': ' + error.message;
      const failures = [];
      try { createSpillway({ store: memoryStore(), shareBreakers: true }); }
      catch (error) { failures.push(said(error)); }
      await createSpillway({ store: memoryStore() }).resume().catch((error) => failures.push(said(error)));
      console.log(JSON.stringify([failures, await createSpillway().resume()]));`;
    expect(await written('liveRuntime', program)).toEqual([
      [`RangeError: shareBreakers ${MISSING}`, `RangeError: resume ${MISSING}`],
      [],
    ]);
  });

  it('R-18.6 resumes where it has made a plan, over any store', async () => {
    const program = `const none = plan();
      console.log(JSON.stringify(await createSpillway({ store: memoryStore() }).resume({ plans: [none] })));`;
    expect(await written('plan', program)).toEqual([]);
  });
});
