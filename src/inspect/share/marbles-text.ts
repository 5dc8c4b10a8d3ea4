import { MEANINGS, type Glyphs, type MarkKind } from './glyphs.ts';
import { fit, pad } from '../columns.ts';
import type { Mark, NodeTold, TurnTold } from '../model.ts';

/** Gives a part of the drawing its colour. */
export type Paint = (part: MarkKind | 'quiet', text: string) => string;

export interface MarbleOptions {
  /** How many columns there are. */
  readonly columns: number;
  readonly glyphs: Glyphs;
  readonly paint: Paint;
}

const LABEL_MAX = 24;
const NOTE_MAX = 34;
/** Below this a time axis says nothing, and notes make room for it. */
const AXIS_MIN = 24;
const LANES_MAX = 50;
/** Columns between two labels of the axis. */
const TICK_GAP = 12;

interface Scale {
  readonly columns: number;
  readonly columnOf: (atMs: number) => number;
}

const scaleOf = (
  { startMs, settledMs, deadlineMs, nodes }: TurnTold,
  columns: number,
): Scale & { readonly spanMs: number } => {
  const lastMs = nodes.reduce((last, { marks }) => Math.max(last, marks.at(-1)?.atMs ?? 0), startMs);
  const spanMs = Math.max(1, (settledMs ?? lastMs) - startMs, (deadlineMs ?? startMs) - startMs, lastMs - startMs);
  return { spanMs, columns, columnOf: (atMs) => Math.round(((atMs - startMs) / spanMs) * (columns - 1)) };
};

/** 1, 2 or 5 times a power of ten: the least that leaves room for its label. */
const tickStepMs = (spanMs: number, columns: number): number => {
  const leastMs = (spanMs * TICK_GAP) / columns;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, leastMs)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= leastMs) ?? leastMs;
};

const axisLines = (
  scale: ReturnType<typeof scaleOf>,
  glyphs: Glyphs,
): { readonly labels: string; readonly line: string } => {
  const stepMs = tickStepMs(scale.spanMs, scale.columns);
  const line = Array.from({ length: scale.columns }, () => glyphs.axis);
  let labels = '';
  for (let ms = 0; ms <= scale.spanMs; ms += stepMs) {
    const column = Math.round((ms / scale.spanMs) * (scale.columns - 1));
    line[column] = glyphs.tick;
    const label = stepMs >= 1000 ? `${ms / 1000} s` : `${ms} ms`;
    if (column + label.length <= scale.columns) labels = pad(labels, column) + (ms === 0 ? '0' : label);
  }
  return { labels, line: line.join('') };
};

/**
 * Puts marks side by side where they fall into one column, without leaving the axis; of too many, the last ones stay.
 */
const placed = (
  marks: readonly Mark[],
  { columns, columnOf }: Scale,
): { readonly mark: Mark; readonly column: number }[] => {
  const shown = marks.slice(-columns);
  const spots = shown.map((mark) => ({ mark, column: columnOf(mark.atMs) }));
  spots.forEach((spot, index) => (spot.column = Math.max(spot.column, (spots[index - 1]?.column ?? -1) + 1)));
  for (let index = spots.length - 1; index >= 0; index--) {
    const spot = spots[index];
    if (spot !== undefined) spot.column = Math.min(spot.column, (spots[index + 1]?.column ?? columns) - 1);
  }
  return spots;
};

const STARTS: ReadonlySet<MarkKind> = new Set(['start', 'alternative', 'default', 'undo']);

const drawLane = (
  { marks }: NodeTold,
  scale: Scale,
  deadlineColumn: number,
  { glyphs, paint }: MarbleOptions,
): string => {
  const spots = placed(marks, scale);
  const cells: string[] = Array.from({ length: scale.columns }, (_, column) =>
    column === deadlineColumn ? paint('quiet', glyphs.deadline) : ' ',
  );
  spots.forEach(({ mark, column }, index) => {
    const next = spots[index + 1];
    if (next !== undefined) {
      // After a start something runs; before the next start something waits.
      const filler = STARTS.has(mark.kind) ? glyphs.running : paint('quiet', glyphs.waiting);
      cells.fill(filler, column + 1, next.column);
    }
    cells[column] = paint(mark.kind, glyphs.marks[mark.kind]);
  });
  return cells.join('');
};

const STATES: Readonly<Record<string, string>> = {
  timed_out: 'timed out',
  compensated: 'undone',
  compensation_failed: 'not undone',
};

const noteOf = ({ state, attempts, usedAlternative, toolName }: NodeTold): string => {
  const words = [state === undefined ? 'running' : (STATES[state] ?? state)];
  if (usedAlternative) words.push(`by ${toolName}`);
  else if (attempts > 1) words.push(`${attempts} attempts`);
  return words.join(', ');
};

const legend = ({ nodes, deadlineMs }: TurnTold, { glyphs, columns }: MarbleOptions): string[] => {
  const used = new Set(nodes.flatMap(({ marks }) => marks.map(({ kind }) => kind)));
  const entries = (Object.keys(MEANINGS) as MarkKind[])
    .filter((kind) => used.has(kind))
    .map((kind) => `${glyphs.marks[kind]} ${MEANINGS[kind]}`);
  if (nodes.some(({ attempts }) => attempts > 1)) entries.push(`${glyphs.waiting} backoff`);
  if (deadlineMs !== undefined) entries.push(`${glyphs.deadline} deadline`);
  const lines: string[] = [];
  for (const entry of entries) {
    const last = lines.at(-1);
    if (last === undefined || last.length + entry.length + 3 > columns) lines.push(entry);
    else lines[lines.length - 1] = `${last}   ${entry}`;
  }
  return lines.map((line) => fit(line, columns, glyphs.ellipsis));
};

const longest = (texts: readonly string[], max: number): number =>
  Math.min(
    max,
    texts.reduce((most, { length }) => Math.max(most, length), 0),
  );

/**
 * Draws a turn as a marble diagram: a line for each node, from left to right in time.
 * Every line fits into the columns; a turn of very many nodes shows the first of them.
 */
export function drawMarbles(turn: TurnTold, options: MarbleOptions): string {
  const { columns, glyphs, paint } = options;
  const lanes = turn.nodes.slice(0, LANES_MAX);
  const notes = lanes.map(noteOf);
  const names = lanes.map(({ nodeId }) => nodeId);
  const labelColumns = Math.min(longest(names, LABEL_MAX), Math.max(1, Math.floor(columns / 4)));
  const noteColumns = longest(notes, NOTE_MAX);
  const besides = columns - labelColumns - 2;
  const showNotes = besides - noteColumns - 2 >= AXIS_MIN;
  const scale = scaleOf(turn, Math.max(2, showNotes ? besides - noteColumns - 2 : besides));
  const deadlineColumn = turn.deadlineMs === undefined ? -1 : scale.columnOf(turn.deadlineMs);
  const axis = axisLines(scale, glyphs);
  const indent = ' '.repeat(labelColumns + 2);
  const rows = lanes.map((lane, index) => {
    const label = pad(fit(lane.nodeId, labelColumns, glyphs.ellipsis), labelColumns + 2);
    const drawing = drawLane(lane, scale, deadlineColumn, options);
    return showNotes
      ? `${label}${drawing}  ${paint('quiet', fit(notes[index] ?? '', noteColumns, glyphs.ellipsis))}`
      : `${label}${drawing}`.trimEnd();
  });
  const unseen = turn.nodes.length - lanes.length;
  const more = unseen > 0 ? [fit(`and ${unseen} more nodes`, columns, glyphs.ellipsis)] : [];
  return [
    paint('quiet', (indent + axis.labels).trimEnd()),
    paint('quiet', indent + axis.line),
    ...rows,
    ...more,
    '',
    ...legend(turn, options).map((line) => paint('quiet', line)),
  ].join('\n');
}
