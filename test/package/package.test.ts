import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGES, linksOf } from '../pages.ts';
import { entries, manifest, root, tsconfigs, writeConsumer } from './consumer.ts';
import { build as stage, install, run } from './packed.ts';

/**
 * The package as users get it: built apart from the tree, packed, and unpacked into a project that has its peers.
 * Nothing is downloaded; `.ci/package.ts` installs the same project from the registry, on every Node, with TypeScript
 * 5.9.
 */
const folder = mkdtempSync(join(tmpdir(), 'spillway-package-'));
const staged = join(folder, 'staged');
const consumer = join(folder, 'consumer');
const installed = join(consumer, 'node_modules/spillway');
const tarball = join(folder, `spillway-${manifest.version}.tgz`);

const node = (cwd: string, ...args: string[]): string => run(cwd, process.execPath, ...args);

beforeAll(() => {
  stage(staged, ['CHANGELOG.md', 'LICENSE', 'src/cli/demo/plan.yaml', 'src/inspect/demo.png', ...PAGES]);
  cpSync(join(root, 'src/simulate/gallery'), join(staged, 'src/simulate/gallery'), { recursive: true });

  writeConsumer(consumer);
  install(staged, folder, installed);
  for (const name of [...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }), '@types/node']) {
    mkdirSync(dirname(join(consumer, 'node_modules', name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(consumer, 'node_modules', name), 'junction');
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('holds every file its manifest names, and the demo’s plan', () => {
    const named = Object.values(manifest.exports).flatMap((to) =>
      typeof to === 'string' ? [to] : [to.types, to.node, to.default],
    );
    const files = [
      ...named.filter((path) => !path.includes('*')),
      ...['tool-call', 'tool-result', 'plan'].map((name) => `dist/schemas/${name}.schema.json`),
      'dist/cli/demo/plan.yaml',
    ];
    expect(files.filter((path) => !existsSync(join(installed, path)))).toEqual([]);
  });

  it('holds every page that the README leads to, and every file that these link to', () => {
    const pages = PAGES.filter((page) => existsSync(join(installed, page)));
    expect(pages).toEqual(PAGES);
    const broken = pages.flatMap(linksOf).filter(({ path }) => !existsSync(join(installed, path)));
    expect(
      broken.map(({ page, link }) => `${page}: ${link}`),
      'add it to `files` of package.json',
    ).toEqual([]);
  });

  it('is built for the entries of package.json that tsconfig.json maps to sources', () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as {
      compilerOptions: { paths: Record<string, string[]> };
    };
    const patterns = Object.keys(compilerOptions.paths).map((path) => new RegExp(`^${path.replace('*', '[^/]+')}$`));
    expect(entries.filter((entry) => !patterns.some((pattern) => pattern.test(entry)))).toEqual([]);
  });

  it('imports from every entry, and runs a call', () => {
    expect(node(consumer, 'imports.js')).toContain(process.version);
  });

  it('gives Node few files for the root, and each class once for all entries', () => {
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const [, from = ''] of readFileSync(path, 'utf8').matchAll(/^(?:import |\} from )"(\.[^"]+)";$/gm))
        load(join(dirname(path), from));
    };
    load(join(installed, 'dist/node/index.js'));
    expect([...loaded].filter((path) => !existsSync(path))).toEqual([]);
    // 155 modules.
    expect(loaded.size).toBeLessThanOrEqual(60);
    const program = `
      const [root, mini, contract, policy] = await Promise.all(
        ['spillway', 'spillway/mini', 'spillway/contract', 'spillway/policy'].map((entry) => import(entry)),
      );
      const classes = [mini.ToolExecutionError === root.ToolExecutionError, mini.liveRuntime === root.liveRuntime];
      console.log(classes.join(), import.meta.resolve('spillway').includes('/dist/node/'));`;
    writeFileSync(join(consumer, 'classes.js'), program);
    expect(node(consumer, 'classes.js')).toBe('true,true true\n');
  });

  it('SEE-8 holds the inspector’s page, bundled', () => {
    const program = `
      const { serveInspector } = await import('spillway/inspect');
      const { createSpillway } = await import('spillway');
      const server = await serveInspector(createSpillway());
      const script = await fetch(server.url + '/inspect.js?token=' + server.token);
      console.log(script.status, (await script.text()).length > 30_000);
      await server.close();`;
    writeFileSync(join(consumer, 'page.js'), program);
    expect(node(consumer, 'page.js')).toBe('200 true\n');
    expect(readFileSync(join(installed, 'dist/inspect/page-asset.js'), 'utf8')).not.toContain('.ci/');
  });

  it('R-3.10 makes a layer that shares breakers where an adapter is all that a program imports', () => {
    const program = `
      const { guardFunction } = await import('spillway/adapters/function');
      const twice = guardFunction('twice', (n) => 2 * n, { shareBreakers: true });
      console.log(await twice(21));`;
    writeFileSync(join(consumer, 'adapter.js'), program);
    expect(node(consumer, 'adapter.js')).toBe('42\n');
  });

  it('has a command', () => {
    // Without `node` before it: it starts with a shebang and may be executed.
    expect(run(consumer, join(installed, 'dist/cli/main.js'), '--help')).toContain('spillway run');
  });

  it.each(tsconfigs)('compiles in a strict program, %s', (tsconfig) => {
    expect(node(consumer, join(root, 'node_modules/typescript/bin/tsc'), '-p', tsconfig)).toBe('');
  });

  it('bundles for a browser, and runs a call there, with nothing of Node', async () => {
    const program = `import { createSpillway, tool } from 'spillway';
      import * as testing from 'spillway/testing';
      const twice = tool({ name: 'twice', execute: (n) => n * 2 });
      createSpillway({ tools: [twice] }).execute({ toolName: 'twice', input: 21 }).then(({ output }) => done(output?.content, testing));`;
    writeFileSync(join(consumer, 'browser.js'), program);
    const { metafile, outputFiles } = await build({
      absWorkingDir: consumer,
      entryPoints: ['browser.js'],
      bundle: true,
      write: false,
      metafile: true,
      platform: 'browser',
      format: 'iife',
      logLevel: 'silent',
    });
    const reached = Object.values(metafile.inputs).flatMap(({ imports }) => imports.map(({ path }) => path));
    expect(reached.filter((path) => isBuiltin(path))).toEqual([]);

    const web = {
      AbortController,
      AbortSignal,
      DOMException,
      Event,
      EventTarget,
      TextEncoder,
      URL,
      clearTimeout,
      console,
      crypto,
      performance,
      queueMicrotask,
      setTimeout,
    };
    const answer = await new Promise((done) => {
      runInNewContext(outputFiles[0]?.text ?? '', { ...web, done });
    });
    expect(answer).toBe(42);
  });

  it('R-1.3 spillway/mini has its three operators in 6 kB, without zod', async () => {
    writeFileSync(
      join(consumer, 'mini.js'),
      `export { attemptTimeout, circuitBreaker, retryBackoff } from 'spillway/mini';`,
    );
    const { metafile, outputFiles } = await build({
      absWorkingDir: consumer,
      entryPoints: ['mini.js'],
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      platform: 'browser',
      format: 'esm',
      target: 'es2024',
      external: ['rxjs'],
    });
    expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThanOrEqual(6_000);
    // Nor for its types.
    const reached = new Set([join(installed, 'dist/mini.d.ts')]);
    for (const file of reached)
      for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/from ['"]([^'"]+)['"]/g)) {
        if (from.startsWith('.')) reached.add(join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts')));
        else expect([file, from]).toStrictEqual([file, 'rxjs']);
      }
    const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
    expect(new Set(imported)).toStrictEqual(new Set(['rxjs']));
  });

  it('satisfies publint', async () => {
    const { messages, pkg } = await publint({ pkgDir: installed, strict: true, pack: false });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it('satisfies are-the-types-wrong', () => {
    // Data has no types.
    const data = [
      '--exclude-entrypoints',
      './sinks/prometheus-rules.yml',
      './sinks/grafana-dashboard.json',
      './llms.txt',
    ];
    expect(
      node(
        root,
        join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'),
        tarball,
        '--profile',
        'esm-only',
        ...data,
      ),
    ).not.toContain('❌');
  });
});
