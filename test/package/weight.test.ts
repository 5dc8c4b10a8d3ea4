import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { manifest, root } from './consumer.ts';

interface Weight {
  readonly bytes: number;
  readonly gzipped: number;
  /** The modules of which at least a byte is in the bundle. */
  readonly modules: readonly string[];
}

/** What a browser loads for a program, rxjs and zod included. */
const weigh = async (contents: string): Promise<Weight> => {
  const shape = {
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
  } as const;
  const { metafile, outputFiles } = await build({ ...shape, stdin: { contents, resolveDir: root, loader: 'ts' } });
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  const [{ contents: code } = { contents: new Uint8Array() }] = outputFiles;
  return {
    bytes: code.length,
    gzipped: gzipSync(code).length,
    modules: inputs.flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  };
};

/** Every module that an entry names, on Node, dependencies not bundled. */
const namedBy = async (entry: string): Promise<readonly string[]> => {
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'silent',
  });
  return Object.values(metafile.inputs).flatMap(({ imports }) => imports.map(({ path }) => path));
};

/** Limits are a ratchet: each may only be lowered. */
describe('the weight of', () => {
  it('createSpillway and tool in a browser: at most 242.3 kB, 88.0 kB gzipped, no zod, no turns', async () => {
    const { bytes, gzipped, modules } = await weigh(`export { createSpillway, tool } from './src/index.ts';`);
    expect(bytes).toBeLessThanOrEqual(242_300);
    expect(gzipped).toBeLessThanOrEqual(88_000);
    // A layer that asks a person is handed what does it; plans and stores bring along what is only theirs.
    const elsewhere = [
      /node_modules\/(?!rxjs|tslib)/,
      /src\/(?:gate|turn|saga)\/(?!runner|brought|own-records)/,
      /shared-breakers/,
    ];
    expect(modules.filter((path) => elsewhere.some((pattern) => pattern.test(path)))).toEqual([]);
  });

  it('its own modules alone on Node: none names zod', async () => {
    expect((await namedBy(join(root, 'src/index.ts'))).filter((path) => path.includes('zod'))).toEqual([]);
  });

  it('the operators alone: at most 107 kB, 39 kB gzipped, without zod', async () => {
    const { bytes, gzipped, modules } = await weigh(
      `export { attemptTimeout, circuitBreaker, createBreaker, guard, retryBackoff } from './src/index.ts';`,
    );
    // A third of it tells errors by their words: R-1.3's tables of English.
    expect(bytes).toBeLessThanOrEqual(107_000);
    expect(gzipped).toBeLessThanOrEqual(39_000);
    expect(modules.filter((path) => path.includes('node_modules/zod'))).toEqual([]);
  });

  it('the Temporal polyfill, 100 ms of start: loaded by the one entry that prints wall time', async () => {
    const entries = Object.entries(manifest.exports).flatMap(([name, to]) =>
      typeof to === 'string'
        ? []
        : [[name, join(root, to.default.replace('./dist/', 'src/').replace(/js$/, 'ts'))] as const],
    );
    const named = await Promise.all(
      [...entries, ['command', join(root, 'src/cli/main.ts')] as const].map(
        async ([name, file]) => [name, await namedBy(file)] as const,
      ),
    );
    expect(named.flatMap(([name, paths]) => (paths.some((path) => path.includes('temporal')) ? [name] : []))).toEqual([
      './sinks/turn-trace',
    ]);
  });
});
