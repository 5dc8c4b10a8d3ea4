import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as rxjs from 'rxjs';
import * as rxjsFetch from 'rxjs/fetch';
import { expect, it } from 'vitest';
import { PAGES, headingsOf, linksOf, readPage, root, sourcesNamedOn } from './pages.ts';

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

interface Snippet {
  readonly file: string;
  /** Of its first line in the file. */
  readonly line: number;
  readonly code: string;
}

const cut = (file: string, pattern: RegExp, clean: (code: string) => string = (code) => code): Snippet[] => {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: text.slice(0, match.index + match[0].indexOf('\n') + 1).split('\n').length,
    code: clean(match[1] ?? ''),
  }));
};

const fences = PAGES.flatMap((page) => cut(page, /^```ts\n([\s\S]*?)^```$/gm));
const examples = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .flatMap((path) =>
    cut(join('src', path), /@example\n([\s\S]*?)(?=^\s*\*\/|^\s*\* @)/gm, (code) =>
      code.replaceAll(/^\s*\* ?(?:```\w*)?/gm, ''),
    ),
  );

const withoutText = (code: string): string => code.replaceAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'/g, "''");
const matches = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1] ?? '');
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

it('the README, the pages beside the code and the examples of docstrings compile', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-snippets-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
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
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
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

/** Runs a file in the root of the repository, where the reader's project would be. */
async function runFile(
  path: string,
): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [path], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], timeout: 120_000 });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { status, stdout, stderr: stderr.replaceAll(/^.*(?:Warning|--trace-).*\n/gm, '') };
}

it(
  'the snippets of all pages run as printed, but for those that need a model or a file of the reader',
  { timeout: 300_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-run-'));
    const server = createServer((_, response) => response.end('AY 73')).listen(0, '127.0.0.1');
    try {
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

it('the plans and manifests of all pages are fine', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-plans-'));
  try {
    const plans = PAGES.flatMap((page) => cut(page, /^```yaml\n([\s\S]*?)^```$/gm)).map(
      ({ file, line, code }, index) => {
        const path = join(folder, `${index}.yaml`);
        writeFileSync(path, code);
        return { file, line, path };
      },
    );
    expect(plans.length).toBeGreaterThan(1);
    for (const { file, line, path } of plans) {
      const { status, stdout } = spawnSync(process.execPath, [join(root, 'src/cli/main.ts'), 'check', path], {
        cwd: root,
        encoding: 'utf8',
      });
      expect({ file, line, status, stdout }).toMatchObject({ file, line, status: 0 });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('the README is one page: at most 12,000 bytes', () => {
  expect(Buffer.byteLength(readPage('README.md')), 'move it next to its code, and link to it').toBeLessThanOrEqual(
    12_000,
  );
});

it('the README’s picture is of the nodes of the bundled plan', () => {
  const [, picture = ''] = /^```text\n([\s\S]*?)^```$/m.exec(readPage('README.md')) ?? [];
  const nodes = matches(readPage('src/cli/demo/plan.yaml'), /^ {4,6}- \{? ?id: (\w+)/gm).slice(-9);
  expect(
    picture.split('\n').flatMap((row) => /^([a-z]+) .* ┊ |^([a-z]+) .*!/.exec(row)?.slice(1).find(Boolean) ?? []),
  ).toEqual(nodes);
});

it('the drawing of the house has every folder of src', () => {
  const [, drawing = ''] = /^```text\n([\s\S]*?)^```$/m.exec(readPage('src/README.md')) ?? [];
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.length).toBeGreaterThan(10);
  expect(folders.map(({ name }) => `${name}/`).filter((name) => !drawing.includes(name))).toEqual([]);
});

it('the marble diagrams of the pages are those of docstrings, which the tests run', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const comments = sources.map((path) => readPage(join('src', path)).replaceAll(/^ {0,4}\* ?/gm, '')).join('\n');
  const diagrams = PAGES.flatMap((page) => cut(page, /^```marbles\n([\s\S]*?)^```$/gm));
  expect(diagrams.length).toBeGreaterThan(5);
  expect(diagrams.filter(({ code }) => !comments.includes(code)).map(({ file, line }) => `${file}:${line}`)).toEqual(
    [],
  );
});

it('every link of every page leads to a file, and to a heading of it', () => {
  const links = PAGES.flatMap(linksOf);
  const broken = links.filter(
    ({ path, heading }) => !existsSync(join(root, path)) || (heading !== '' && !headingsOf(path).includes(heading)),
  );
  expect(broken.map(({ page, link }) => `${page}: ${link}`)).toEqual([]);
  expect(links.length).toBeGreaterThan(30);
});

it('every page is linked to, from page to page, starting at the README', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) for (const { path } of linksOf(page)) if (path.endsWith('.md')) reached.add(path);
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
});

it('every source that a page names is there', () => {
  const missing = PAGES.flatMap((page) =>
    sourcesNamedOn(page)
      .filter((path) => !existsSync(join(root, path)) && !existsSync(join(root, dirname(page), path)))
      .map((path) => `${page}: ${path}`),
  );
  expect(missing, 'the file was moved or renamed: so is its name on the page').toEqual([]);
});

it('every page, and every file that one links to, is in the package', () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    input: '',
  });
  // npm 11 and before give a list, later ones an object by name.
  const packed = Object.values(JSON.parse(stdout) as Record<string, { files: Array<{ path: string }> }>).flatMap(
    ({ files }) => files.map(({ path }) => path),
  );
  const needed = new Set([...PAGES, ...PAGES.flatMap(linksOf).map(({ path }) => path)]);
  expect(
    [...needed].filter((path) => !packed.includes(path)),
    'add it to `files` of package.json',
  ).toEqual([]);
});
