import { readFileSync, readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What the linter cannot say, or says without the replacement: the shape of the tree, read from its text. */
const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const under = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(root, posix.join(entry.parentPath, entry.name)));

const topLevel = readdirSync(root).filter(
  (name) => !['node_modules', 'dist', '.git'].includes(name) && !/\.(tgz|log)$/.test(name),
);
const everything = ['src', 'test', 'benchmarks', '.ci'].flatMap(under);
const code = everything.filter((path) => /\.tsx?$/.test(path));
const inSrc = code.filter((path) => path.startsWith('src/'));
const isPage = (path: string): boolean => path.startsWith('src/inspect/page/');

/** The text with comments blanked and strings emptied, line numbers kept. */
const bare = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, (match) => {
    const blank = match.replaceAll(/[^\n]/g, '');
    return match.startsWith('/') ? blank : `${match[0]}${blank}${match[0]}`;
  });

const finds = (path: string, text: string, pattern: RegExp): string[] =>
  [...text.matchAll(new RegExp(pattern, 'gm'))].map(
    (match) => `${path}:${text.slice(0, match.index).split('\n').length} ${match[0].trim().slice(0, 80)}`,
  );

interface Import {
  readonly clause: string;
  readonly from: string;
}
const imports = new Map<string, readonly Import[]>(
  inSrc.map((path) => {
    const text = read(path);
    const statements = text.matchAll(
      /^(?:import|export)\s+([^'";]*?)\s*from\s+'([^']+)'|^import\s+'([^']+)'|[^.\w]import\(\s*'([^']+)'/gm,
    );
    return [
      path,
      [...statements].map(([, clause = '', ...from]) => ({
        clause,
        from: from.find((name) => name !== undefined) ?? '',
      })),
    ];
  }),
);
const target = (path: string, from: string): string =>
  from.startsWith('.') ? posix.join(posix.dirname(path), from) : from;
const packageOf = (from: string): string => from.split('/', from.startsWith('@') ? 2 : 1).join('/');

/** From the ground up: a file may import what stands on a floor below its own. */
const FLOORS: ReadonlyArray<readonly string[]> = [
  ['contract'],
  ['runtime'],
  ['errors'],
  ['policy'],
  ['operators'],
  ['layer'],
  ['gate', 'call'],
  ['saga'],
  ['turn'],
  ['operate'],
  ['formats', 'inspect'],
  ['providers', 'adapters', 'agent', 'stores', 'sinks', 'gateway', 'fleet', 'mcp-proxy', 'testing'],
  ['top'],
  // What makes layers of its own, and so stands above the public names.
  ['simulate', 'explore'],
  ['cli'],
];
/** What some may import besides. */
const BESIDES: Readonly<Record<string, readonly string[]>> = {
  adapters: ['top'],
  // Its ledger is asked as the store is.
  fleet: ['stores'],
  gateway: ['agent', 'sinks'],
  'mcp-proxy': ['providers', 'top'],
};
/** What some may import, and nothing else. */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  // A format knows nothing of tools and calls.
  formats: ['contract'],
  // What it knows, it knows of the trace.
  inspect: ['contract', 'policy'],
  // Time and chance are arguments of a policy.
  policy: ['contract', 'errors'],
};
const layerOf = (path: string): string =>
  path.split('/').length > 2 ? (path.split('/')[1] ?? '') : path === 'src/runtime.ts' ? 'runtime' : 'top';
const floorOf = (layer: string): number => FLOORS.findIndex((layers) => layers.includes(layer));

const mayImport = (from: string, to: string): boolean => {
  if (from === to || BESIDES[from]?.includes(to) === true) return true;
  return ONLY[from]?.includes(to) ?? floorOf(to) < floorOf(from);
};

describe('layers', () => {
  it('all have a floor', () => {
    expect([...new Set(inSrc.map(layerOf))].filter((layer) => floorOf(layer) < 0)).toEqual([]);
  });

  it('are imported downward only', () => {
    const upward = [...imports].flatMap(([path, list]) =>
      list
        .filter(({ from }) => from.startsWith('.') && !mayImport(layerOf(path), layerOf(target(path, from))))
        .map(({ from }) => `${path} imports ${from}`),
    );
    expect(
      upward,
      `${FLOORS.map((layers) => layers.join(', ')).join(' <- ')}: move the shared part down, or pass it in`,
    ).toEqual([]);
  });

  it('a folder holds at most 16 files, none of which begins with the folder’s name', () => {
    const folders = Map.groupBy(inSrc, (path) => posix.dirname(path));
    const full = [...folders]
      .filter(([, files]) => files.length > 16)
      .map(([folder, files]) => `${folder} holds ${files.length}`);
    const stuttering = inSrc.filter((path) =>
      posix.basename(path).startsWith(`${posix.basename(posix.dirname(path))}-`),
    );
    expect(
      [...full, ...stuttering],
      'make a folder of what belongs together, and leave its name out of the names of its files',
    ).toEqual([]);
  });

  it('no file reaches itself by values', () => {
    const valuesOf = (path: string): string[] =>
      (imports.get(path) ?? [])
        .filter(({ clause, from }) => from.startsWith('.') && !/^type\b/.test(clause))
        .map(({ from }) => target(path, from));
    const circles = inSrc.filter((path) => {
      const reached = new Set(valuesOf(path));
      for (const other of reached) for (const next of valuesOf(other)) reached.add(next);
      return reached.has(path);
    });
    expect(circles, 'pass it in, or move the shared part down').toEqual([]);
  });

  it('contract and policy import types of RxJS, never values', () => {
    const values = inSrc
      .filter((path) => ['contract', 'policy'].includes(layerOf(path)))
      .filter((path) =>
        imports.get(path)?.some(({ clause, from }) => packageOf(from) === 'rxjs' && !/^type\b/.test(clause)),
      );
    expect(values, 'write `import type`, or move the code to operators: policies decide, operators act').toEqual([]);
  });

  it('the root entry reaches no module of Node', () => {
    const reached = new Set(['src/index.ts']);
    const builtin: string[] = [];
    for (const path of reached) {
      for (const { from } of imports.get(path) ?? []) {
        if (isBuiltin(from)) builtin.push(`${path} imports ${from}`);
        else if (from.startsWith('.')) reached.add(target(path, from));
      }
    }
    expect(
      builtin,
      'the root entry runs in a browser: use the web API, or move the code behind an entry of its own',
    ).toEqual([]);
  });

  it('every package imported is declared', () => {
    const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as Record<
      'dependencies' | 'peerDependencies',
      Record<string, string>
    >;
    const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
    const missing = [...imports].flatMap(([path, list]) =>
      list
        .filter(
          ({ from }) => !from.startsWith('.') && !isBuiltin(from) && !declared.has(packageOf(from)) && !isPage(path),
        )
        .map(({ from }) => `${path} imports ${from}`),
    );
    expect(missing, 'a package used by src belongs in dependencies or peerDependencies').toEqual([]);
  });
});

interface Ban {
  readonly what: string;
  readonly pattern: RegExp;
  readonly instead: string;
  readonly files: readonly string[];
}
const timeless = inSrc.filter((path) => path !== 'src/runtime.ts' && layerOf(path) !== 'cli' && !isPage(path));
/** Reading a message to print or carry it is fine; asking what it says is not. */
const DECIDED_BY_MESSAGE = new RegExp(
  [
    /\bmessage\)?\??\.(?:includes|indexOf|lastIndexOf|search|match|matchAll|startsWith|endsWith|toLowerCase|toUpperCase|toLocale\w+|localeCompare|split|charAt|charCodeAt|length)\b/,
    /\.(?:test|exec|has|get)\([^\n]*\bmessage\b/,
    /\bmessage\)?\s*[!=]==?\s*['"`]|['"`]\s*[!=]==?\s*[\w.?]*\bmessage\b/,
    /\bswitch\s*\([^()\n]*\bmessage\b/,
    /(?:\bString\((?:e|err|error|thrown|cause|reason)\)|\b(?:err|error|thrown|cause|reason)\??\.toString\(\))\??\.(?:includes|match|search|indexOf|startsWith|endsWith|toLowerCase)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

const BANS: readonly Ban[] = [
  {
    what: 'any',
    pattern: /(?:[:<,|&=]|\bas|\bextends)\s*any\b(?!\s*[:(])/,
    instead: '`unknown`, a type parameter, or the type itself',
    files: code,
  },
  { what: 'enum', pattern: /\benum\s+\w+\s*\{/, instead: 'a union of string literals', files: code },
  { what: 'namespace', pattern: /^\s*(?:export\s+)?(?:declare\s+)?namespace\s+\w+/, instead: 'a module', files: code },
  {
    what: 'default export',
    pattern: /^export default\b/,
    instead: 'a named export',
    files: code.filter((path) => !path.endsWith('.config.ts')),
  },
  {
    what: 'export *',
    pattern: /^export \*/,
    instead: 'each name, one by one: what is public is decided, not inherited',
    files: code,
  },
  {
    what: 'exported Subject',
    pattern: /^export (?:const|let)[^=\n]*(?::\s*\w*Subject\b|=\s*new \w*Subject\b)/,
    instead: '`asObservable()`, and a function for those who may emit',
    files: inSrc,
  },
  {
    what: 'Subject in a public interface',
    pattern: /^export (?:interface|type)(?:(?!^\}|;$(?=\n\S))[\s\S])*?:\s*\w*Subject</,
    instead: '`Observable<T>`',
    files: inSrc,
  },
  {
    what: 'clock, timer or die',
    pattern:
      /\b(?:Date\.now|new Date\(\s*\)|performance\.now|set(?:Timeout|Interval|Immediate)\b|Math\.random|crypto\.(?:randomUUID|getRandomValues)|process\.hrtime)/,
    instead: 'the `Runtime` given: `now`, `wallNow`, `after`, `random`, `id`',
    files: timeless,
  },
  {
    what: 'RxJS timer',
    pattern:
      /^import (?!type\b)[^;]*\b(?:timer|interval|delay|timeout|timeoutWith|debounceTime|throttleTime|auditTime|sampleTime|bufferTime|windowTime|asyncScheduler|asapScheduler|animationFrameScheduler)\b[^;]*from ''/,
    instead: '`runtime.after`: RxJS’s own timers know nothing of the `Runtime`',
    files: timeless.filter((path) => path !== 'src/testing/runtime-on.ts'),
  },
  {
    what: 'decision by an error’s message',
    pattern: DECIDED_BY_MESSAGE,
    instead: '`kind`, `classification`, `code` or `status`: text is matched once, in src/errors (R-12.1)',
    // The command line words anew, for a person, what its own parser and schema found.
    files: inSrc.filter((path) => !['errors', 'cli'].includes(layerOf(path))),
  },
  {
    what: 'focused test',
    pattern: /\b(?:it|test|describe|bench)(?:\.\w+)*\.only\b/,
    instead: 'the whole suite',
    files: code,
  },
];

describe('text', () => {
  const texts = new Map(code.map((path) => [path, bare(read(path))]));
  it.each(BANS)('has no $what', ({ pattern, instead, files }) => {
    const found = files.flatMap((path) => finds(path, texts.get(path) ?? '', pattern));
    expect(found, `use instead: ${instead}`).toEqual([]);
  });

  it('knows a decision by a message when it sees one', () => {
    const decided = [
      'error.message.includes("x")',
      'error.message?.toLowerCase()',
      '(error as Error).message.match(/x/)',
      '/x/.test(error.message)',
      'PATTERN.exec(String(error.message))',
      "error.message === 'x'",
      'switch (error.message) {',
      'const { message } = error; message.startsWith("x")',
      'String(error).includes("x")',
      'KINDS.get(error.message)',
    ];
    const carried = [
      'new Error(`it said: ${error.message}`)',
      'log(error.message)',
      '{ message: error.message, kind }',
      "error.message ?? 'nothing'",
      'const { message } = error;',
      'event.message === undefined',
    ];
    expect(decided.filter((text) => !DECIDED_BY_MESSAGE.test(text))).toEqual([]);
    expect(carried.filter((text) => DECIDED_BY_MESSAGE.test(text))).toEqual([]);
  });

  it('begins each regression with what was wrong and what holds', () => {
    const regressions = code.filter((path) => /^test\/regressions\/.*\.test\.ts$/.test(path));
    expect(regressions.length).toBeGreaterThan(100);
    // The comment at the file's head, in as many lines as it needs.
    const story = (path: string): string =>
      /^(?:\/\/ .*\n)*/.exec(read(path))?.[0].replaceAll('\n// ', ' ').trim() ?? '';
    const untold = regressions.filter((path) => !/^\/\/ Was: .+\.["”]? Now: .+\.$/.test(story(path)));
    expect(untold, 'begin it with `// Was: what went wrong. Now: what holds.`').toEqual([]);
  });

  it('skips no test without its reason', () => {
    const skipped = code
      .filter((path) => path.startsWith('test/'))
      .flatMap((path) =>
        finds(
          path,
          read(path),
          /\.(?:skip|todo)(?:\.each)?\((?!.*skipped: \w)|\.(?:skipIf|runIf)\([^\n]*?\)\((?!.*skipped: \w)/,
        ),
      );
    expect(skipped, 'end the test’s name with `(skipped: the reason)`').toEqual([]);
  });

  it('names no machine and no registry', () => {
    const files = [...everything, ...topLevel.filter((name) => /\.(json|md)$|^LICENSE$|^\.\w+rc/.test(name))];
    const found = files.flatMap((path) =>
      finds(
        path,
        read(path),
        /(?<![\w.$}])\/(?:work|root|home|Users)\/\w|\bregistry\.[a-z]+\.|\bnpmjs\.\w+|"resolved":\s"http/,
      ),
    );
    expect(found, 'use a relative path; a lock file without `resolved` works with every registry').toEqual([]);
  });
});

it('the top level holds the agreed names only', () => {
  const agreed = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'src',
    'test',
    'benchmarks',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
  ];
  expect(
    topLevel.filter((name) => !name.startsWith('.') && !agreed.includes(name)),
    'it belongs under src, test, benchmarks or .ci',
  ).toEqual([]);
});
