import { readFileSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';

/** The pages of the repository, and what is on them. */
export const root: string = join(import.meta.dirname, '..');

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8');

const under = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => posix.join(folder, path))
    .toSorted();

/** All pages: the README first. The changelog tells of times when files had other names. */
export const PAGES: readonly string[] = ['README.md', ...['.github', 'benchmarks', 'src', 'test'].flatMap(under)];

/** A link of a page to a file of the repository. */
export interface PageLink {
  readonly page: string;
  readonly link: string;
  /** From the root of the repository. */
  readonly path: string;
  /** The heading that is linked to; empty without one. */
  readonly heading: string;
}

const withoutFences = (page: string): string => readPage(page).replaceAll(/^```[\s\S]*?^```$/gm, '');

/** Links and pictures that stay within the repository. */
export function linksOf(page: string): readonly PageLink[] {
  // A link may have code as its text, so only the address is looked for.
  const links = [...withoutFences(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', heading = ''] = link.split('#');
      return { page, link, path: path === '' ? page : posix.join(posix.dirname(page), path), heading };
    });
}

/** The anchors of a page's headings, as GitHub and others make them. */
export const headingsOf = (page: string): readonly string[] =>
  [...withoutFences(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Files that do not exist, and show where one would go. */
const WOULD_BE: readonly string[] = [
  'src/sinks/kafka.ts',
  'src/stores/NAME.ts',
  'src/providers/NAME.ts',
  'src/adapters/NAME.ts',
];

/** Sources that a page names in code, such as `src/call/pipe.ts`, or `call/pipe.ts` on a page of `src`. */
export function sourcesNamedOn(page: string): readonly string[] {
  const named = [...withoutFences(page).matchAll(/`([\w./-]+\.ts)`/g)].map(([, path = '']) => path);
  return named.filter((path) => !WOULD_BE.includes(path));
}
