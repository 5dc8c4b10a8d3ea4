import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { root } from './consumer.ts';

const run = async (file: string, cwd: string): Promise<unknown> =>
  JSON.parse((await promisify(execFile)(process.execPath, [file], { cwd })).stdout);

const bundled = async (contents: string): Promise<Uint8Array> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    external: ['node:*', './store.mjs'],
  });
  return outputFiles[0]?.contents ?? new Uint8Array();
};

/** What a user's program writes that is bundled by esbuild and minified, beside a bundle of its own with a store. */
const written = async (program: string): Promise<unknown> => {
  const folder = await mkdtemp(join(tmpdir(), 'bundle-'));
  try {
    await writeFile(join(folder, 'store.mjs'), await bundled(`export { sqliteStore } from './src/stores/sqlite.ts';`));
    await writeFile(join(folder, 'program.mjs'), await bundled(program));
    return await run('program.mjs', folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

/** Two layers over one store: the tool fails in the first until its breaker opens; then the second is asked. */
const TWO_LAYERS = `
  import { createSpillway, tool } from './src/index.ts';
  const down = tool({ name: 'down', policy: { breaker: { failureThreshold: 1 }, retry: { maxAttempts: 1 } },
    execute: () => { throw Object.assign(new Error('reset'), { code: 'ECONNRESET' }); } });
  const ask = async (store) => {
    const layers = [1, 2].map(() => createSpillway({ tools: [down], store, shareBreakers: true }));
    const codes = [];
    for (const layer of layers) codes.push((await layer.execute({ toolName: 'down', input: {} })).error.code);
    const turns = await layers[0].resume();
    for (const layer of layers) await layer.close();
    console.log(JSON.stringify([...codes, turns.length]));
  };`;
const SHARED = ['transport_error', 'circuit_open', 0];

describe('a bundle', () => {
  it.each([
    ['of SQLite', `import { sqliteStore } from './src/stores/sqlite.ts'; ask(sqliteStore('calls.db'));`],
    [
      'of SQLite, whatever another copy of the package has brought',
      `import { sqliteStore } from './src/stores/sqlite.ts';
       globalThis[Symbol.for('spillway.brought')] = { SharedBreakers: Object, resumeTurns: Object };
       ask(sqliteStore('calls.db'));`,
    ],
    ['of another copy of the package', `import { sqliteStore } from './store.mjs'; ask(sqliteStore('calls.db'));`],
    [
      'of another kind, said to be one of several processes',
      `import { acrossProcesses } from './src/operate.ts';
       import { memoryStore } from './src/stores/memory.ts';
       const store = memoryStore();
       acrossProcesses(store);
       ask(store);`,
    ],
  ])('R-3.10 shares breakers over a store %s, and can resume', async (_, program) => {
    expect(await written(TWO_LAYERS + program)).toEqual(SHARED);
  });

  it('R-3.10 has what shares breakers with a store of Redis', async () => {
    const program = `import { createSpillway } from './src/index.ts';
      import { redisStore } from './src/stores/redis.ts';
      const sendCommand = () => new Promise(() => undefined);
      const client = { isOpen: true, isReady: true, options: {}, on() {}, sendCommand };
      createSpillway({ store: redisStore(client), shareBreakers: true });
      console.log(JSON.stringify('made'));
      process.exit();`;
    expect(await written(program)).toBe('made');
  });

  it('R-3.10 R-18.6 says what it lacks where it was given no store of several processes', async () => {
    const program = `import { createSpillway } from './src/index.ts';
      import { memoryStore } from './src/stores/memory.ts';
      const said = [];
      const told = (error) => said.push(error.name + ': ' + error.message);
      const store = memoryStore();
      const seen = { ...store, report: () => { said.push('the store was asked'); return store.report(); } };
      try { createSpillway({ store: seen, shareBreakers: true }); } catch (error) { told(error); }
      await new Promise((resolve) => { setTimeout(resolve); });
      await createSpillway({ store }).resume().catch(told);
      console.log(JSON.stringify(said));`;
    const remedy = 'give createSpillway a store that came through acrossProcesses of spillway/operate';
    expect(await written(program)).toEqual([
      `RangeError: shareBreakers is not in this bundle: ${remedy}`,
      `RangeError: resume() is not in this bundle: ${remedy}`,
    ]);
  });

  it('R-18.6 can resume before its first plan is made, where it holds what makes plans', async () => {
    const program = `import { createSpillway, plan } from './src/index.ts';
      import { memoryStore } from './src/stores/memory.ts';
      const turns = await createSpillway({ store: memoryStore() }).resume();
      console.log(JSON.stringify([turns, plan().nodes]));`;
    expect(await written(program)).toEqual([[], []]);
  });
});

describe('modules that are loaded one by one', () => {
  it('R-3.10 share breakers over a store in memory, also where adapters alone make the layers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'modules-'));
    try {
      const adapter = JSON.stringify(join(root, 'src/adapters/function.ts'));
      const store = JSON.stringify(join(root, 'src/stores/memory.ts'));
      const program = `import { guardFunction } from ${adapter};
        import { memoryStore } from ${store};
        const reset = () => { throw Object.assign(new Error('reset'), { code: 'ECONNRESET' }); };
        const policy = { breaker: { failureThreshold: 1 }, retry: { maxAttempts: 1 } };
        const options = { policy, store: memoryStore(), shareBreakers: true };
        const kinds = [];
        for (const down of [1, 2].map(() => guardFunction('down', reset, options)))
          await down(1).catch(({ kind }) => kinds.push(kind));
        console.log(JSON.stringify(kinds));`;
      await writeFile(join(folder, 'program.mjs'), program);
      expect(await run('program.mjs', folder)).toEqual(['transport_error', 'circuit_open']);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
