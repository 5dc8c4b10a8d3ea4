import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as rxjs from 'rxjs';
import * as rxjsFetch from 'rxjs/fetch';
import { expect, it } from 'vitest';

/**
 * Compiles what readers copy: every `ts` fence of the README, and every `@example` of a docstring, each as a module of its own.
 * A fence imports what it needs, and may go on from the fences above it. An example may leave its imports out: its names are those
 * of its own file, of the package's entries, of RxJS and zod. What is the reader's own, in either, is in STAND_INS.
 */
const root = join(import.meta.dirname, '..');

/** Names of the reader's own program, one a line. */
const STAND_INS = `
import type { Observable } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import type { Breaker, BreakerInput, BreakerSettings, FailureNotification, Spillway, Tool } from 'spillway';
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

/** Pages with snippets; those of each go on from the ones above on the same page. */
const PAGES = ['README.md', 'src/sinks/README.md'];
const fences = PAGES.flatMap((page) => cut(page, /^```ts\n([\s\S]*?)^```$/gm));
const examples = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .flatMap((path) => cut(join('src', path), /@example\n([\s\S]*?)(?=^\s*\*\/|^\s*\* @)/gm, (code) => code.replaceAll(/^\s*\* ?(?:```\w*)?/gm, '')));

const withoutText = (code: string): string => code.replaceAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'/g, "''");
const matches = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1] ?? '');
const listed = (clause: string): string[] => clause.split(',').map((part) => /(\w+\$?)\s*$/.exec(part)?.[1] ?? '').filter((name) => name !== '');

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
const imported = (code: string): string[] => matches(code, /^import (?:type )?([^;]*?) from\s/gm).flatMap((clause) => listed(clause.replaceAll(/[{}]/g, ' ')));

const names = (module: string, list: readonly string[]): Array<[string, string]> => list.map((name) => [name, module]);
const { exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, string | { default: string }> };
const entryFiles = Object.entries(entries).flatMap(([entry, to]) =>
  typeof to === 'string' ? [] : [[`spillway${entry.slice(1)}`, to.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')] as const],
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
      const known = earlier !== undefined ? new Map([...standIns, ...earlier]) : new Map([...standIns, ...libraries, ...names(join(root, file), exportsOf(join(root, file)))]);
      const bare = withoutText(code);
      const declared = [...topLevel(bare), ...imported(code)];
      const used = new Set(matches(bare, /(?<![\w$])(?<!(?<!\.)\.)([A-Za-z_][\w$]*)(?!\s*:(?!:))/g));
      const header = [...used].filter((name) => known.has(name) && !declared.includes(name)).map((name) => `import { ${name} } from '${known.get(name)}';`);
      writeFileSync(join(folder, `${index}.ts`), `${header.join(' ')}\n${code}\nexport { ${[...new Set(topLevel(bare.replaceAll(/^export .*/gm, '')))].join(', ')} };\n`);
      for (const name of topLevel(bare)) earlier?.set(name, `./${index}.ts`);
    });

    const paths = Object.fromEntries(entryFiles.map(([entry, to]) => [entry, [join(root, to)]]));
    // Snippets show, they do not build: the options that are about emitting and about unused names are off.
    const imports = { rewriteRelativeImportExtensions: false, allowImportingTsExtensions: true };
    const lax = { rootDir: null, ...imports, noUnusedLocals: false, noUnusedParameters: false, verbatimModuleSyntax: false, isolatedDeclarations: false, declaration: false };
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions: { ...lax, paths }, include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');

    const { stdout, stderr } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', folder], { cwd: folder, encoding: 'utf8' });
    // An error's further lines are indented. Errors of the sources themselves are not this test's.
    const output = `${stdout}${stderr}`.trim();
    const errors = (output === '' ? [] : output.split(/\n(?=\S)/)).flatMap((error) => {
      const [place = '', index, line] = /^(?:(\d+)|stand-ins)\.ts\((\d+),/.exec(error) ?? [];
      const snippet = snippets[Number(index)];
      if (place === '') return error.includes('): error ') ? [] : error;
      return snippet === undefined ? error : `${snippet.file}:${snippet.line + Number(line) - 2}${error.slice(error.indexOf(')') + 1)}`;
    });
    expect(errors, 'fix the snippet, or add a name of the reader’s program to STAND_INS').toEqual([]);
    expect(snippets.length).toBeGreaterThan(10);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** What a snippet of the README cannot do without: a network, a model, a file or a name of the reader's own, or an end. */
const NOT_RUN = /https?:|new Anthropic|github\.yaml|\bsearch\b|serveAdmin/;

it('the snippets of all pages that need no network run as printed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-run-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const fileOf = new Map<string, string>(entryFiles.map(([entry, file]) => [entry, join(root, file)]));
    const above = new Map(PAGES.map((page) => [page, new Map<string, string>()]));
    const ran = fences.filter(({ file, code }, index) => {
      if (NOT_RUN.test(code)) return false;
      const earlier = above.get(file) ?? new Map<string, string>();
      const declared = [...topLevel(withoutText(code)), ...imported(code)];
      const used = new Set(matches(withoutText(code), /(?<![\w$.])([A-Za-z_][\w$]*)/g));
      const header = [...earlier].filter(([name]) => used.has(name) && !declared.includes(name)).map(([name, module]) => `import { ${name} } from '${module}';`);
      const resolved = code.replaceAll(/from '(spillway[\w/-]*)'/g, (_, entry: string) => `from '${fileOf.get(entry) ?? entry}'`);
      const own = topLevel(withoutText(code)).filter((name) => !header.includes(name));
      writeFileSync(join(folder, `${index}.ts`), `${header.join(' ')}\n${resolved}\nexport { ${own.join(', ')} };\n`);
      for (const name of own) earlier.set(name, `./${index}.ts`);
      return true;
    });
    for (const fence of ran) {
      const { code, line } = fence;
      const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, `${fences.indexOf(fence)}.ts`)], { cwd: root, encoding: 'utf8', timeout: 120_000 });
      expect({ line, status, stdout, stderr: stderr.replaceAll(/^.*(?:Warning|--trace-).*\n/gm, '') }, code).toEqual({ line, status: 0, stdout: '', stderr: '' });
    }
    expect(fences.filter((fence) => fence.file !== 'README.md' && !ran.includes(fence))).toEqual([]);
    expect(ran.filter(({ file }) => file === 'README.md').map(({ code }) => /TestScheduler|mcpStdioProvider|guardTools|createHarvest/.exec(code)?.[0])).toEqual(['TestScheduler', 'mcpStdioProvider', 'guardTools', 'createHarvest']);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
