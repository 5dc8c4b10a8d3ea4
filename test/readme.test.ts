import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { PAGES, headingsOf, linksOf, readPage, root, sourcesNamedOn } from './pages.ts';
import { cut, matches } from './snippets.ts';

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

it('no page has npx fetch a server by the name of its program: that is nobody’s package, or somebody else’s', () => {
  const programs = /(\bnpx\b[\s\S]{0,60}?[\s'"[]mcp-server-[\w-]+)/g;
  expect(PAGES.flatMap((page) => matches(readPage(page), programs).map((start) => `${page}: ${start}`))).toEqual([]);
  expect(matches("command: 'npx',\n  args: ['mcp-server-filesystem', '.']", programs)).toHaveLength(1);
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
