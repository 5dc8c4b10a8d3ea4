// `llms.txt`: what a coding agent needs to use the package, of `.ci/llms.md`, the manifest and the API.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from './api-report.ts';

const root = join(import.meta.dirname, '..');

const shortened = (text: string): string =>
  text
    .replaceAll(/\breadonly (?=[\w['[{(])/g, '')
    .replaceAll(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2))
    // What has one member fits on a line.
    .replaceAll(/\{\n +([^\n{}]{1,80};)\n *\}/g, '{ $1 }');

/** The names that an entry has at run time; types are found by the compiler. */
const valuesOf = ({ exports }: Entry): readonly string[] =>
  [...exports].flatMap(([as, { text }]) => (/^(?:type|interface) /.test(text) ? [] : [as]));

const ADAPTERS = 'spillway/adapters/';
const inTicks = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

/** Each entry with its names; those that all adapters have are told once. */
const listOf = (entries: readonly Entry[]): string => {
  const adapters = entries.filter(({ name }) => name.startsWith(ADAPTERS)).map(valuesOf);
  const common = (adapters[0] ?? []).filter((name) => adapters.every((values) => values.includes(name)));
  const lines = entries.map((entry) => {
    const isAdapter = entry.name.startsWith(ADAPTERS);
    const own = valuesOf(entry).filter((name) => !isAdapter || !common.includes(name));
    return `- \`${entry.name}\`: ${inTicks(own) || 'types'}`;
  });
  return [...lines, `- Every adapter, besides: ${inTicks(common)}`].join('\n');
};

const signatures = (entries: readonly Entry[], entry: string, names: readonly string[]): string => {
  const exports = entries.find(({ name }) => name === entry)?.exports;
  const texts = names.map((name) => {
    const found = exports?.get(name);
    if (found === undefined) throw new Error(`.ci/llms.md asks for ${name} of ${entry}, which is not there`);
    return shortened(found.text);
  });
  return `\`${entry}\`\n\n\`\`\`d.ts\n${texts.join('\n')}\n\`\`\`\n`;
};

/** The page's text; each comment of the source page stands for what is made. */
export function llmsText(entries: readonly Entry[]): string {
  return readFileSync(join(root, '.ci/llms.md'), 'utf8')
    .replace('<!-- entries -->', () => listOf(entries))
    .replaceAll(/<!-- api (\S+): ([^>]*) -->\n/g, (_, entry: string, names: string) =>
      signatures(entries, entry, names.split(' ')),
    );
}
