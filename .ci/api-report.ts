// The public API as one text, from the declarations that tsc emits. `api.ts` writes it; the test suite compares it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');

/** A name that one file takes from another. */
interface Link {
  readonly file: string;
  readonly name: string;
}
/** One file of declarations. */
interface Declarations {
  /** The statements of each name that is declared here: an overloaded function has several. */
  readonly own: ReadonlyMap<string, readonly string[]>;
  /** What it hands on from other files, by the name under which it does so. */
  readonly links: ReadonlyMap<string, Link>;
  /** Names that others can import. */
  readonly exported: ReadonlySet<string>;
}
/** A declaration, found behind all re-exports. */
interface Found extends Link {
  readonly text: string;
}
/** An entry of package.json and what it exports. */
export interface Entry {
  readonly name: string;
  readonly exports: ReadonlyMap<string, Found>;
}

const TOKEN = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
const withoutComments = (text: string): string =>
  text.replaceAll(TOKEN, (token) => (token.startsWith('/') ? '' : token));
const withoutStrings = (text: string): string => text.replaceAll(TOKEN, "''");

/** The statements of a file: each begins at the start of a line; its further lines are indented, or only close it. */
const statementsOf = (text: string): string[] => {
  const lines = withoutComments(text)
    .split('\n')
    .map((line) => line.trimEnd());
  const shown = lines.filter((line) => line !== '' && !/^\s+(?:#private|private\b.*);$/.test(line));
  // A comment between the members of a union puts each on a line of its own; the report does not depend on comments.
  const joined = shown
    .join('\n')
    .replaceAll(/=\n\s*/g, '= ')
    .replaceAll(/\n\s*(?=[|&] )/g, ' ')
    .replaceAll(/= [|&] /g, '= ');
  return joined.split(/\n(?=[a-z])/);
};

const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(?:const|let|function|class|interface|type) ([\w$]+)/;
const LINKED = /^(?:export|import) (?:type )?\{([^}]*)\} from '([^']+)'/;

/** `a, type B as C`: the name there and the name here. */
const specifiers = (clause: string): Array<readonly [there: string, here: string]> =>
  clause.split(',').flatMap((part) => {
    const [, there, here] = /^\s*(?:type )?([\w$]+)(?: as ([\w$]+))?\s*$/.exec(part) ?? [];
    return there === undefined ? [] : [[there, here ?? there] as const];
  });

const readDeclarations = (file: string): Declarations => {
  const own = new Map<string, string[]>();
  const links = new Map<string, Link>();
  const exported = new Set<string>();
  for (const statement of statementsOf(readFileSync(file, 'utf8'))) {
    const [, name] = DECLARED.exec(statement) ?? [];
    const [, clause, from = ''] = LINKED.exec(statement) ?? [];
    if (name !== undefined) {
      own.set(name, [...(own.get(name) ?? []), statement.replace(/^(?:export )?(?:declare )?/, '')]);
      if (statement.startsWith('export ')) exported.add(name);
    } else if (clause !== undefined) {
      for (const [there, here] of specifiers(clause)) {
        if (statement.startsWith('export ')) exported.add(here);
        if (from.startsWith('.'))
          links.set(here, { file: join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts')), name: there });
      }
    } else if (statement.startsWith('export ') && statement !== 'export {};')
      throw new Error(`${relative(root, file)}: the report cannot read "${statement}"`);
  }
  return { own, links, exported };
};

/** Follows names to their declarations, over the files of one folder. */
class Reader {
  readonly #files = new Map<string, Declarations>();

  file(path: string): Declarations {
    const read = this.#files.get(path) ?? readDeclarations(path);
    this.#files.set(path, read);
    return read;
  }

  find(file: string, name: string): Found | undefined {
    const { own, links } = this.file(file);
    const text = own.get(name)?.join('\n');
    if (text !== undefined) return { file, name, text };
    const link = links.get(name);
    return link && this.find(link.file, link.name);
  }

  /** The declarations that a declaration names. Names of members and parameters are followed by a colon. */
  named({ file, text }: Found): Found[] {
    const names = new Set(
      [...withoutStrings(text).matchAll(/(?<![.\w$])([A-Za-z_$][\w$]*)(?![\w$]|\??:)/g)].map(([, name = '']) => name),
    );
    return [...names].flatMap((name) => this.find(file, name) ?? []);
  }
}

const idOf = ({ file, name }: Link): string => `${file} ${name}`;
const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const sorted = <T>(found: ReadonlyMap<string, T>): Array<[string, T]> =>
  [...found].toSorted(([a], [b]) => byName(a, b));

const entriesOf = (reader: Reader, folder: string): Entry[] => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>;
  };
  return Object.entries(exports).flatMap(([path, to]) => {
    if (typeof to === 'string') return [];
    const file = join(folder, relative('dist', to.types));
    const found = [...reader.file(file).exported].map((name): [string, Found] => {
      const declaration = reader.find(file, name);
      if (declaration === undefined) throw new Error(`spillway${path.slice(1)}: ${name} is declared nowhere`);
      return [name, declaration];
    });
    return [{ name: `spillway${path.slice(1)}`, exports: new Map(sorted(new Map(found))) }];
  });
};

/** Entries that are files and not modules: schemas, rules, a dashboard. */
const filesOf = (): string => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>;
  };
  return Object.entries(exports)
    .flatMap(([path, to]) => (typeof to === 'string' ? `- \`spillway${path.slice(1)}\`\n` : []))
    .join('');
};

/** What the signatures name and no entry exports: it changes what a caller may pass, as the signatures do. */
const behind = (reader: Reader, entries: readonly Entry[]): Found[] => {
  const open = entries.flatMap(({ exports }) => [...exports.values()]);
  const seen = new Set(open.map(idOf));
  const hidden: Found[] = [];
  for (const declaration of open) {
    for (const named of reader.named(declaration)) {
      if (seen.has(idOf(named))) continue;
      seen.add(idOf(named));
      hidden.push(named);
      open.push(named);
    }
  }
  return hidden.toSorted((a, b) => byName(a.name, b.name) || byName(a.text, b.text));
};

const fence = (texts: readonly string[]): string =>
  texts.length === 0 ? '' : `\n\`\`\`ts\n${texts.join('\n')}\n\`\`\`\n`;

const PREAMBLE = `# The public API

Every name of every entry of the package, with its signature. \`npm run api\` writes this page from the declarations
that the compiler emits, and a test fails where it is stale: what changes here changes for users, and belongs in
CHANGELOG.md. Comments are left out, private members too. A name that an earlier entry exports is told by that alone.
`;

const reportOf = (reader: Reader, entries: readonly Entry[]): string => {
  const told = new Map<string, string>();
  const sections = entries.map(({ name, exports }) => {
    const again = [...exports].flatMap(([as, found]) =>
      told.has(idOf(found)) ? [`- \`${as}\`: see \`${told.get(idOf(found))}\`\n`] : [],
    );
    const here = [...exports].filter(([, found]) => !told.has(idOf(found)));
    for (const [, found] of here) told.set(idOf(found), name);
    const texts = here.map(([as, found]) => (as === found.name ? found.text : `// exported as ${as}\n${found.text}`));
    return `\n## ${name}\n${fence(texts)}${again.length > 0 ? `\n${again.join('')}` : ''}`;
  });
  const hidden = behind(reader, entries).map(({ text }) => text);
  const last = `## Exported by no entry, named by the signatures above\n${fence(hidden)}`;
  return `${PREAMBLE}${sections.join('')}\n## Files\n\n${filesOf()}\n${last}`;
};

/** Emits the declarations of the sources, and reads them. `flags` are more flags of the compiler. */
export function readApi(...flags: readonly string[]): { readonly report: string; readonly entries: readonly Entry[] } {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-api-'));
  try {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    execFileSync(
      process.execPath,
      [tsc, '-p', join(root, '.ci/tsconfig.build.json'), '--emitDeclarationOnly', '--outDir', folder, ...flags],
      { stdio: 'inherit' },
    );
    const reader = new Reader();
    const entries = entriesOf(reader, folder);
    return { report: reportOf(reader, entries), entries };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
