import { build } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { median, type Question } from './measure.ts';

const STARTS = 9;
const ROOT = resolve(import.meta.dirname, '..');
const PEERS = ['rxjs', 'zod', '@modelcontextprotocol/sdk'];

/** The size in kB (1,000 bytes) of what `contents` needs, minified and gzipped, without the peers. */
const kilobytesOf = async (contents: string): Promise<number> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    external: [...PEERS, ...PEERS.map((peer) => `${peer}/*`)],
  });
  return gzipSync(outputFiles[0]?.contents ?? new Uint8Array()).length / 1000;
};

/** The median time of an import in a process of its own, in milliseconds. */
const importMs = (url: string): number =>
  median(
    Array.from({ length: STARTS }, () => {
      const code = `const from = performance.now(); await import(${JSON.stringify(url)}); console.log(performance.now() - from);`;
      return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }));
    }),
  );

/** What the root entry costs before the first call. */
export async function benchmarkStart(): Promise<Question> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'));
  try {
    // As Node gets it published: in few files, and the dependencies beside it.
    execFileSync(process.execPath, [join(ROOT, '.ci/build.ts'), join(folder, 'dist')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const rootMs = importMs(pathToFileURL(join(folder, 'dist/node/index.js')).href);
    const importing = (...peers: readonly string[]): number =>
      importMs(
        `data:text/javascript,${encodeURIComponent(peers.map((peer) => `import ${JSON.stringify(import.meta.resolve(peer))};`).join(''))}`,
      );
    const [rxjsMs, peersMs] = [importing('rxjs'), importing('rxjs', 'zod')];
    const three = 'attemptTimeout, circuitBreaker, retryBackoff';
    const [rootKb, miniKb, miniBreakerKb, wordedKb, wordedBreakerKb, guardKb] = await Promise.all([
      kilobytesOf(`export * from './src/index.ts';`),
      kilobytesOf(`export { ${three} } from './src/mini.ts';`),
      kilobytesOf(`export { ${three}, createBreaker } from './src/mini.ts';`),
      kilobytesOf(`export { ${three} } from './src/index.ts';`),
      kilobytesOf(`export { ${three}, createBreaker } from './src/index.ts';`),
      kilobytesOf(`export { guard } from './src/index.ts';`),
    ]);
    return {
      question: 'What does it cost to start?',
      figures: [
        { name: 'importing the root entry, peers included', usPerUnit: rootMs * 1000, runs: STARTS },
        { name: 'importing rxjs and zod alone', usPerUnit: peersMs * 1000, runs: STARTS },
        { name: 'importing rxjs alone', usPerUnit: rxjsMs * 1000, runs: STARTS },
      ],
      ratios: {},
      kilobytes: {
        'the root entry, minified and gzipped, without peers': rootKb,
        'the three operators of spillway/mini': miniKb,
        'the three and createBreaker of spillway/mini': miniBreakerKb,
        'the three operators of spillway': wordedKb,
        'the three and createBreaker of spillway': wordedBreakerKb,
        'guard alone': guardKb,
      },
      targets: [
        { name: 'importing the root entry, cold', value: rootMs, limit: 60, unit: 'ms' },
        { name: 'the root entry, minified and gzipped, without peers', value: rootKb, limit: 60, unit: 'kB' },
        {
          name: 'the three operators alone, of spillway/mini, minified and gzipped',
          value: miniKb,
          limit: 6,
          unit: 'kB',
        },
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
