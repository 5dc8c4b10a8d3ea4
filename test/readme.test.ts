import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as rxjs from 'rxjs';
import * as rxjsFetch from 'rxjs/fetch';
import { expect, it } from 'vitest';

/**
 * Compiles what readers copy: every `ts` fence of the README, and every `@example` of a docstring, each as a module of its own.
 * A snippet imports what it shows importing. Any other name it uses is looked up, in this order: in its own source file, in the
 * fences above it, in the package's entries, in RxJS and zod, in STAND_INS.
 */
const root = join(import.meta.dirname, '..');

/** Names of the reader's own program. */
const STAND_INS = `
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Observable } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import type { Breaker, BreakerInput, BreakerSettings, FailureNotification, Tool } from 'spillway';
export { Client, StreamableHTTPClientTransport };
export declare const flights: Tool<{ from: string; to: string }, { id: string }, 'flight_search'>;
export declare const hotels: Tool<{ city: string }, { name: string }, 'hotel_search'>;
export declare const book: Tool<{ flight: string }, { reference: string }, 'book_trip'>;
export declare const search: Tool<string, readonly string[], 'search'>;
export declare function fetchFlights(from: string, to: string, signal: AbortSignal): Promise<{ id: string }>;
export declare const search$: Observable<string>, source: Observable<string>, work$: Observable<string>, download$: Observable<Uint8Array>, progress$: Observable<number>;
export declare const breaker: Breaker, settings: BreakerSettings, recordedInputs: readonly BreakerInput[], notification: FailureNotification;
export declare const scheduler: TestScheduler, expectObservable: RunHelpers['expectObservable'], timedOut: Error;
export declare const url: URL;
export declare function connectedClient(): Promise<Client>;
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

const fences = cut('README.md', /^```ts\n([\s\S]*?)^```$/gm);
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
    ...matches(text, /^export declare const ([^;]*);/gm).flatMap((clause) => matches(clause, /([\w$]+):/g)),
  ];
};
const topLevel = (code: string): string[] => [
  ...matches(code, /^(?:export )?(?:declare |async )*(?:const|let|function|class|interface|type) ([\w$]+)/gm),
  ...matches(code, /^(?:const|let) [{[]([^}\]]*)[}\]]/gm).flatMap(listed),
];
const imported = (code: string): string[] => matches(code, /^import (?:type )?([^;]*?) from/gm).flatMap((clause) => listed(clause.replaceAll(/[{}]/g, ' ')));

const names = (module: string, list: readonly string[]): Array<[string, string]> => list.map((name) => [name, module]);
const { exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, string | { default: string }> };
const entryFiles = Object.entries(entries).flatMap(([entry, to]) =>
  typeof to === 'string' ? [] : [[`spillway${entry.slice(1)}`, to.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')] as const],
);

it('the README and the examples of docstrings compile', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-snippets-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    writeFileSync(join(folder, 'stand-ins.ts'), STAND_INS);
    const everywhere = new Map([
      ...names('./stand-ins.ts', exportsOf(join(folder, 'stand-ins.ts'))),
      ...names('zod', ['z']),
      ...names('rxjs/fetch', Object.keys(rxjsFetch)),
      ...names('rxjs', [...Object.keys(rxjs), 'Subscription', 'Observer', 'OperatorFunction']),
      ...entryFiles.toReversed().flatMap(([entry, file]) => names(entry, exportsOf(join(root, file)))),
    ]);
    const above = new Map<string, string>();

    const snippets = [...fences, ...examples];
    snippets.forEach(({ file, code }, index) => {
      const own = file === 'README.md' ? [] : names(join(root, file), exportsOf(join(root, file)));
      const known = new Map([...everywhere, ...(file === 'README.md' ? above : []), ...own]);
      const bare = withoutText(code);
      const declared = [...topLevel(bare), ...imported(code)];
      const used = new Set(matches(bare, /(?<![\w$])(?<!(?<!\.)\.)([A-Za-z_][\w$]*)(?!\s*:(?!:))/g));
      const header = [...used].filter((name) => known.has(name) && !declared.includes(name)).map((name) => `import { ${name} } from '${known.get(name)}';`);
      writeFileSync(join(folder, `${index}.ts`), `${header.join(' ')}\n${code}\nexport { ${[...new Set(topLevel(bare.replaceAll(/^export .*/gm, '')))].join(', ')} };\n`);
      for (const name of file === 'README.md' ? topLevel(bare) : []) above.set(name, `./${index}.ts`);
    });

    const paths = Object.fromEntries(entryFiles.map(([entry, to]) => [entry, [join(root, to)]]));
    // Snippets show, they do not build: the options that are about emitting and about unused names are off.
    const imports = { rewriteRelativeImportExtensions: false, allowImportingTsExtensions: true };
    const lax = { rootDir: null, ...imports, noUnusedLocals: false, noUnusedParameters: false, verbatimModuleSyntax: false, isolatedDeclarations: false, declaration: false };
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions: { ...lax, paths }, include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');

    const { stdout, stderr } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', folder], { cwd: folder, encoding: 'utf8' });
    const errors = `${stdout}${stderr}`.replaceAll(/^(\S*?)(\d+)\.ts\((\d+),\d+\)/gm, (place, path: string, index: string, line: string) => {
      const snippet = path === '' ? snippets[Number(index)] : undefined;
      return snippet === undefined ? place : `${snippet.file}:${snippet.line + Number(line) - 2}`;
    });
    expect(errors, 'fix the snippet, or add a name of the reader’s program to STAND_INS').toBe('');
    expect(snippets.length).toBeGreaterThan(10);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
