import type { NodeResult, TurnResult } from '../../contract/turn.ts';
import { inText } from '../plan/references.ts';
import type { Style } from './terminal.ts';
import { columnsOf, duration, fit, pad, plain } from './text.ts';

const HEAD = ['node', 'tool', 'state', 'tries', 'time', 'result'] as const;
/** The widest that a column may get; the last one takes what is left. */
const COLUMNS_MAX = [24, 28, 9, 5, 11] as const;
const GAP = '  ';

const resultText = ({ id, state, reason = '', result }: NodeResult, values: TurnResult['values']): string => {
  if (state === 'succeeded') return inText(values[id]);
  return state === 'defaulted' ? `${inText(values[id])} (${reason})` : (result?.error?.message ?? reason);
};

const cells = (node: NodeResult, values: TurnResult['values']): string[] => [
  plain(node.id),
  plain(node.result?.toolName ?? node.toolName),
  node.state.replaceAll('_', ' '),
  node.result === undefined ? '' : String(node.result.attempts),
  node.result === undefined ? '' : duration(node.result.durationMs),
  plain(resultText(node, values)),
];

/** The nodes of a turn as a table, in plan order: what each gave, or why it gave nothing. */
export function nodeTable({ nodes, values }: TurnResult, { columns, glyphs, paint }: Style): string {
  const rows = nodes.map((node) => cells(node, values));
  const widths = COLUMNS_MAX.map((max, index) =>
    Math.min(
      max,
      [[...HEAD], ...rows].reduce((most, row) => Math.max(most, columnsOf(row[index] ?? '')), 0),
    ),
  );
  // A narrow terminal shows fewer columns rather than broken lines.
  const besides = (hidden: readonly number[]): number =>
    widths.reduce((sum, width, index) => (hidden.includes(index) ? sum : sum + width + GAP.length), 0);
  const hidden = [[], [1], [1, 4], [1, 3, 4]].find((candidate) => columns - besides(candidate) >= 16) ?? [1, 3, 4];
  const line = (row: readonly string[], painted: (index: number, text: string) => string): string => {
    const last = fit(row.at(-1) ?? '', Math.max(0, columns - besides(hidden)), glyphs.ellipsis);
    const shown = widths.flatMap((width, index) =>
      hidden.includes(index) ? [] : [painted(index, pad(fit(row[index] ?? '', width, glyphs.ellipsis), width))],
    );
    return [...shown, painted(5, last)].join(GAP).trimEnd();
  };
  return [
    line(HEAD, (_, text) => paint('quiet', text)),
    ...rows.map((row, place) =>
      line(row, (index, text) => (index === 2 ? paint(nodes[place]?.state ?? 'quiet', text) : text)),
    ),
  ].join('\n');
}

/** The sentence of a turn, with its status in front. */
export function sentence({ status, summary }: TurnResult, { paint }: Style): string {
  return `${paint(status, `${status}:`)} ${plain(summary)}.`;
}
