// `llms.txt`: what a coding agent needs to use the package, of `src/llms.md`, the manifest and the API.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './api-report.ts';

const root = join(import.meta.dirname, '..');

const shortened = (text: string): string =>
  text
    .replaceAll(/\breadonly (?=[\w['[{(])/g, '')
    .replaceAll(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));

/** Each entry with the names that it has at run time; types are found by the compiler. */
const listOf = (entries: readonly Entry[]): string =>
  entries
    .map(({ name, exports }) => {
      const values = [...exports].flatMap(([as, { text }]) => (/^(?:type|interface) /.test(text) ? [] : [`\`${as}\``]));
      return `- \`${name}\`: ${values.join(', ') || 'types'}`;
    })
    .join('\n');

const signatures = (entries: readonly Entry[], entry: string, names: readonly string[]): string => {
  const exports = entries.find(({ name }) => name === entry)?.exports;
  const texts = names.map((name) => {
    const found = exports?.get(name);
    if (found === undefined) throw new Error(`src/llms.md asks for ${name} of ${entry}, which is not there`);
    return shortened(found.text);
  });
  return `\`${entry}\`\n\n\`\`\`d.ts\n${texts.join('\n')}\n\`\`\`\n`;
};

/** The page's text; each comment of the source page stands for what is made. */
export function llmsText(entries: readonly Entry[]): string {
  return readFileSync(join(root, 'src/llms.md'), 'utf8')
    .replace('<!-- entries -->', () => listOf(entries))
    .replaceAll(/<!-- api (\S+): ([^>]*) -->\n/g, (_, entry: string, names: string) =>
      signatures(entries, entry, names.split(' ')),
    );
}
