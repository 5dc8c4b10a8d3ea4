import { CANARY, type Framework } from './frameworks/kit.ts';
import { worded, type Measured, type Scenario } from './measure.ts';

/** One case of one framework, on both sides. */
export interface Row {
  readonly framework: Framework;
  readonly scenario: Scenario;
  readonly alone: Measured;
  readonly guarded: Measured;
}

const said = ({ framework, scenario }: Row, side: Measured, resumed: boolean): string =>
  framework.told?.[scenario.title] ?? worded(side, scenario, resumed);

const kept = ({ seen }: Measured, { sibling = '' }: Scenario): boolean =>
  seen.told.get(sibling)?.includes('fine') === true;

/** The run in one word, and what was lost or paid. */
const brief = ({ framework, scenario }: Row, side: Measured): string => {
  const told = framework.told?.[scenario.title];
  if (told !== undefined) return told;
  if (side.end === 'hangs') return '**hangs**';
  const paid = side.seen.ran.filter((name) => name === 'pay').length;
  const lost = kept(side, scenario) ? [] : ['**loses the other result**'];
  const twice = paid > 1 ? [`**pays ${paid} times**`] : [];
  return [side.end, ...lost, ...twice].join(', ');
};

const count = (rows: readonly Row[], title: string, holds: (row: Row) => boolean): string => {
  const measured = rows.filter(
    ({ framework, scenario }) => scenario.title === title && framework.told?.[title] === undefined,
  );
  return `${measured.filter(holds).length} of ${measured.length}`;
};

type Side = 'alone' | 'guarded';
const hangs =
  (side: Side) =>
  (row: Row): boolean =>
    row[side].end === 'hangs';
const tells =
  (side: Side) =>
  (row: Row): boolean =>
    row[side].seen.shown.includes(CANARY);

const lines = (head: readonly string[], body: readonly (readonly string[])[]): string[] => [
  `| ${head.join(' | ')} |`,
  `|${head.map(() => '---').join('|')}|`,
  ...body.map((cells) => `| ${cells.join(' | ')} |`),
];

const HANGS = 'a tool ignores its signal';
const THROWS = 'a tool throws';
const BREAKS = 'the connection breaks after a payment';
const ABORTS = 'the caller aborts';

/** What hangs, what is lost, what is paid twice: one line a framework. */
const overview = (rows: readonly Row[]): string[] => {
  const shown = [HANGS, ABORTS, THROWS, 'bad arguments', 'an unknown tool', BREAKS];
  const frameworks = Map.groupBy(rows, ({ framework }) => framework);
  const body = [...frameworks].flatMap(([{ name }, own]) =>
    (['alone', 'guarded'] as const).map((side) => [
      side === 'alone' ? name : '',
      side,
      ...shown.map((title) =>
        own
          .filter(({ scenario }) => scenario.title === title)
          .map((row) => brief(row, row[side]))
          .join(),
      ),
    ]),
  );
  return lines(['framework', '', ...shown], body);
};

/** The page of `side-by-side.md`. */
export function page(rows: readonly Row[]): string {
  const frameworks = new Set(rows.map(({ framework }) => framework)).size;
  const entries = [...new Map(rows.map(({ framework: { name, entry } }) => [name, entry]))].map(([name, entry]) => {
    const [path = '', call = ''] = entry.split(': ', 2);
    return [name, `\`spillway/adapters/${path}\``, `\`${call}\``];
  });
  const cases = rows.map((row) => [
    row.framework.name,
    row.scenario.title,
    said(row, row.alone, false),
    said(row, row.guarded, true),
  ]);
  return `${[
    '# Frameworks on their own and guarded',
    '',
    `What ${frameworks} ways to run an agent’s tools in TypeScript do when a tool misbehaves: the same tools and the`,
    'same scripted model, each with its real package, once as it comes and once with one line of spillway around its',
    'tools. A test measures all of it, but for the one case that ends its process.',
    '',
    `On their own ${count(rows, HANGS, hangs('alone'))} hang on a tool that ignores its signal,`,
    `guarded ${count(rows, HANGS, hangs('guarded'))}; ${count(rows, ABORTS, hangs('alone'))} do not hear their`,
    `caller’s abort while such a tool runs, guarded ${count(rows, ABORTS, hangs('guarded'))};`,
    `${count(rows, THROWS, tells('alone'))} show the model a secret of what a tool threw,`,
    `guarded ${count(rows, THROWS, tells('guarded'))}.`,
    '',
    ...overview(rows),
    '',
    '## How to guard each',
    '',
    'An example of each is on [the page of the adapters](../../src/adapters/README.md).',
    '',
    ...lines(['framework', 'entry', 'what to call'], entries),
    '',
    '## Case by case',
    '',
    'Measured by `side-by-side.test.ts`; `UPDATE=1` writes this page anew. The slow tool takes 10 s and does not look',
    'at its signal; timeouts are 200 ms, and on its own a framework has its own timeout set where it has one. A run that',
    'has not settled after 4 s hangs. The thrown message holds a secret. The payment’s connection breaks after its',
    'effect. Beside the failing call the model makes one that answers: its result is kept, or lost. Guarded, OpenAI',
    'Agents also runs with `toolNotFoundBehavior` set. Where a guarded run throws, the model is told from what its',
    'harvest kept: by `resumeMessages` where the adapter has it, else by the host. Claude’s side of its SDK is an MCP',
    'client here, since its command is a program of its own; what the client does with an abort is the client’s.',
    '',
    ...lines(['framework', 'case', 'on its own', 'guarded'], cases),
  ].join('\n')}\n`;
}
