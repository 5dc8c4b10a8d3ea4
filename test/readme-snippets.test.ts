import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as rxjs from 'rxjs';
import * as rxjsFetch from 'rxjs/fetch';
import { beforeAll, expect, it, vi } from 'vitest';
import { PAGES, root } from './pages.ts';
import { installFrameworks, linkModules, runFile } from './reader.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from './side-install.ts';
import { cut, matches, type Snippet } from './snippets.ts';

/**
 * Compiles what readers copy: every `ts` fence of a page, and every `@example` of a docstring, each as a module of its
 * own. A fence imports what it needs, and may go on from the fences above it. An example may leave its imports out: its
 * names are those of its own file, of the package's entries, of RxJS and zod. What is the reader's own, in either, is
 * in STAND_INS.
 */
/** Names of the reader's own program, one a line. */
const STAND_INS = `
import type { Observable } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import type { Breaker, DedupeStore, FailureNotification, Spillway, Tool } from 'spillway';
import type { FleetEngine } from 'spillway/contract';
import type { BreakerInput, BreakerSettings } from 'spillway/policy';
import type { VirtualRuntime } from 'spillway/testing';
export { Client } from '@modelcontextprotocol/sdk/client/index.js';
export { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
export { readFile } from 'node:fs/promises';
export { createClient } from 'redis';
export { expect } from 'vitest';
export declare const flights: Tool<{ from: string; to: string }, { id: string }, 'flight_search'>;
export declare const hotels: Tool<{ city: string }, { name: string }, 'hotel_search'>;
export declare const book: Tool<{ flight: string }, { reference: string }, 'book_trip'>;
export declare const search: Tool<string, readonly string[], 'search'>;
export declare const tools: readonly [typeof flights, typeof hotels];
export declare const spillway: Spillway;
export declare const runtime: VirtualRuntime;
export declare const log: unknown[];
export declare const body: string;
export declare const search$: Observable<string>;
export declare const source: Observable<string>;
export declare const work$: Observable<string>;
export declare const download$: Observable<Uint8Array>;
export declare const progress$: Observable<number>;
export declare const breaker: Breaker;
export declare const settings: BreakerSettings;
export declare const recordedInputs: readonly BreakerInput[];
export declare const notification: FailureNotification;
export declare const scheduler: TestScheduler;
export declare const expectObservable: RunHelpers['expectObservable'];
export declare const timedOut: Error;
export declare const url: URL;
export declare const redis: import('ioredis').Redis;
export declare const store: DedupeStore;
export declare const fleet: FleetEngine;
export declare const response: import('node:http').ServerResponse;
export { Redis } from 'ioredis';
export declare function fetchFlights(from: string, to: string, signal: AbortSignal): Promise<{ id: string }>;
export declare function connectedClient(): Promise<import('@modelcontextprotocol/sdk/client/index.js').Client>;
`;

const fences = PAGES.flatMap((page) => cut(page, /^```ts\n([\s\S]*?)^```$/gm));
const examples = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .flatMap((path) =>
    cut(join('src', path), /@example\n([\s\S]*?)(?=^\s*\*\/|^\s*\* @)/gm, (code) =>
      code.replaceAll(/^\s*\* ?(?:```\w*)?/gm, ''),
    ),
  );

const withoutText = (code: string): string => code.replaceAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'/g, "''");
const listed = (clause: string): string[] =>
  clause
    .split(',')
    .map((part) => /(\w+\$?)\s*$/.exec(part)?.[1] ?? '')
    .filter((name) => name !== '');

/** What a module gives to others: its declarations, and what it re-exports by name. */
const exportsOf = (path: string): string[] => {
  const text = readFileSync(path, 'utf8');
  return [
    ...matches(text, /^export (?:declare |async |abstract )*(?:const|let|function|class|interface|type) ([\w$]+)/gm),
    ...matches(text, /^export (?:type )?\{([^}]*)\}/gm).flatMap(listed),
  ];
};
const topLevel = (code: string): string[] => [
  ...matches(code, /^(?:export )?(?:declare |async )*(?:const|let|function|class|interface|type) ([\w$]+)/gm),
  ...matches(code, /^(?:const|let) [{[]([^}\]]*)[}\]]/gm).flatMap(listed),
];
const imported = (code: string): string[] =>
  matches(code, /^import (?:type )?([^;]*?) from\s/gm).flatMap((clause) => listed(clause.replaceAll(/[{}]/g, ' ')));

const names = (module: string, list: readonly string[]): Array<[string, string]> => list.map((name) => [name, module]);
const { exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { default: string }>;
};
const entryFiles = Object.entries(entries).flatMap(([entry, to]) =>
  typeof to === 'string'
    ? []
    : [[`spillway${entry.slice(1)}`, to.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')] as const],
);

// The types of every framework are read, on a machine that may be busy.
vi.setConfig({ testTimeout: 300_000 });
beforeAll(installFrameworks, SIDE_INSTALL_TIMEOUT_MS);

it('the README, the pages beside the code and the examples of docstrings compile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-snippets-'));
  try {
    await linkModules(folder);
    writeFileSync(join(folder, 'stand-ins.ts'), STAND_INS);
    const standIns = names('./stand-ins.ts', exportsOf(join(folder, 'stand-ins.ts')));
    const libraries = [
      ...names('zod', ['z']),
      ...names('rxjs/fetch', Object.keys(rxjsFetch)),
      ...names('rxjs', [...Object.keys(rxjs), 'Subscription', 'Observer', 'OperatorFunction']),
      ...entryFiles.toReversed().flatMap(([entry, file]) => names(entry, exportsOf(join(root, file)))),
    ];
    const above = new Map(PAGES.map((page) => [page, new Map<string, string>()]));

    const snippets = [...fences, ...examples];
    snippets.forEach(({ file, code }, index) => {
      const earlier = above.get(file);
      const known =
        earlier !== undefined
          ? new Map([...standIns, ...earlier])
          : new Map([...standIns, ...libraries, ...names(join(root, file), exportsOf(join(root, file)))]);
      const bare = withoutText(code);
      const declared = [...topLevel(bare), ...imported(code)];
      const used = new Set(matches(bare, /(?<![\w$])(?<!(?<!\.)\.)([A-Za-z_][\w$]*)(?!\s*:(?!:))/g));
      const header = [...used]
        .filter((name) => known.has(name) && !declared.includes(name))
        .map((name) => `import { ${name} } from '${known.get(name)}';`);
      writeFileSync(
        join(folder, `${index}.ts`),
        `${header.join(' ')}\n${code}\nexport { ${[...new Set(topLevel(bare.replaceAll(/^export .*/gm, '')))].join(', ')} };\n`,
      );
      for (const name of topLevel(bare)) earlier?.set(name, `./${index}.ts`);
    });

    const paths = Object.fromEntries(entryFiles.map(([entry, to]) => [entry, [join(root, to)]]));
    // Snippets show, they do not build: the options that are about emitting and about unused names are off.
    const imports = { rewriteRelativeImportExtensions: false, allowImportingTsExtensions: true };
    const lax = {
      rootDir: null,
      ...imports,
      noUnusedLocals: false,
      noUnusedParameters: false,
      verbatimModuleSyntax: false,
      isolatedDeclarations: false,
      declaration: false,
    };
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions: { ...lax, paths }, include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');

    const { stdout, stderr } = spawnSync(
      process.execPath,
      [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', folder],
      { cwd: folder, encoding: 'utf8' },
    );
    // An error's further lines are indented. Errors of the sources themselves are not this test's.
    const output = `${stdout}${stderr}`.trim();
    const errors = (output === '' ? [] : output.split(/\n(?=\S)/)).flatMap((error) => {
      const [place = '', index, line] = /^(?:(\d+)|stand-ins)\.ts\((\d+),/.exec(error) ?? [];
      const snippet = snippets[Number(index)];
      if (place === '') return error.includes('): error ') ? [] : error;
      return snippet === undefined
        ? error
        : `${snippet.file}:${snippet.line + Number(line) - 2}${error.slice(error.indexOf(')') + 1)}`;
    });
    expect(errors, 'fix the snippet, or add a name of the reader’s program to STAND_INS').toEqual([]);
    expect(snippets.length).toBeGreaterThan(10);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** What a snippet that is not run cannot do without: a model behind a key, a server or a file of the reader's own. */
const NOT_RUN = /new Anthropic|github\.yaml/;

/** Hosts that snippets ask for an answer: a server of this test stands in for them. */
const HOSTS = /https:\/\/(?:example\.com|bank\.example)(?=\/|')/g;

/** The snippets as files of a folder, each with what it uses of those above it. Gives those that can be run, and their files. */
function writeRunnable(folder: string, origin: string): Array<{ readonly fence: Snippet; readonly path: string }> {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const fileOf = new Map<string, string>(entryFiles.map(([entry, file]) => [entry, join(root, file)]));
  const above = new Map(PAGES.map((page) => [page, new Map<string, string>()]));
  return fences.flatMap((fence, index) => {
    const { file, code } = fence;
    if (NOT_RUN.test(code)) return [];
    const earlier = above.get(file) ?? new Map<string, string>();
    const bare = withoutText(code);
    const declared = [...topLevel(bare), ...imported(code)];
    const used = new Set(matches(bare, /(?<![\w$.])([A-Za-z_][\w$]*)/g));
    const header = [...earlier]
      .filter(([name]) => used.has(name) && !declared.includes(name))
      .map(([name, module]) => `import { ${name} } from '${module}';`);
    const resolved = code
      .replaceAll(/from '(spillway[\w/-]*)'/g, (_, entry: string) => `from '${fileOf.get(entry) ?? entry}'`)
      .replaceAll(HOSTS, origin);
    const own = topLevel(bare);
    const path = join(folder, `${index}.ts`);
    writeFileSync(path, `${header.join(' ')}\n${resolved}\nexport { ${own.join(', ')} };\n`);
    for (const name of own) earlier.set(name, `./${index}.ts`);
    return [{ fence, path }];
  });
}

it(
  'the snippets of all pages run as printed, but for those that need a model or a file of the reader',
  { timeout: 300_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-run-'));
    const server = createServer((_, response) => response.end('AY 73')).listen(0, '127.0.0.1');
    try {
      await linkModules(folder);
      await once(server, 'listening');
      const runnable = writeRunnable(folder, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const pages = Map.groupBy(runnable, ({ fence }) => fence.file);
      for (const [page, snippets] of pages) {
        // One after the other, in one process: each goes on from those above.
        const path = join(folder, `${page.replaceAll(/\W/g, '_')}.ts`);
        writeFileSync(path, snippets.map((snippet) => `import '${snippet.path}';\n`).join(''));
        const { status, stdout, stderr } = await runFile(path);
        const printed = snippets.some(({ fence }) => fence.code.includes('console.log')) ? '' : stdout;
        const places = snippets.map((snippet) => `${snippet.path} is ${page}:${snippet.fence.line}`).join('\n');
        expect({ page, status, printed, stderr }, places).toEqual({ page, status: 0, printed: '', stderr: '' });
      }
      const left = fences.filter((fence) => runnable.every((other) => other.fence !== fence));
      const remedy = 'let it run: with a model of spillway/agent/scripted, or a server of its own';
      expect(
        left.map(({ file }) => file),
        remedy,
      ).toEqual(['src/agent/README.md', 'src/providers/README.md']);
      expect(pages.size).toBeGreaterThan(8);
    } finally {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
