import type { Mark, MarkKind, NodeTold, TurnTold } from '../model.ts';
import { duration } from '../text.ts';

const ROW = 26;
const LEFT = 150;
const WIDTH = 860;
const RIGHT = 170;
const NODES_MAX = 100;
const LABEL_MAX = 17;

const SIGNS: Readonly<Record<MarkKind, { readonly sign: string; readonly colour: string }>> = {
  start: { sign: '', colour: '#57606a' },
  alternative: { sign: '»', colour: '#8250df' },
  default: { sign: '◇', colour: '#9a6700' },
  value: { sign: '●', colour: '#1a7f37' },
  error: { sign: '✗', colour: '#cf222e' },
  timeout: { sign: '◷', colour: '#bc4c00' },
  rejected: { sign: '⊘', colour: '#cf222e' },
  cut: { sign: '!', colour: '#bc4c00' },
  skip: { sign: '∅', colour: '#57606a' },
  verified: { sign: '?', colour: '#0969da' },
  undo: { sign: '‹', colour: '#0969da' },
  undone: { sign: '○', colour: '#0969da' },
  left: { sign: '‼', colour: '#cf222e' },
};
const STARTS: ReadonlySet<MarkKind> = new Set(['start', 'alternative', 'default', 'undo']);

/** Of the texts, and of the picture for who cannot see it. */
export const SVG: string = '<svg xmlns="http://www.w3.org/2000/svg"';
export const FONT: string = 'font-family="ui-monospace, monospace" font-size="13"';

/** A text as XML has it: nothing in it is markup. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const fit = (text: string): string =>
  text.length > LABEL_MAX ? `${text.slice(0, LABEL_MAX - 1).toWellFormed()}…` : text;
const rounded = (value: number): number => Math.round(value * 10) / 10;

const lineOf = (marks: readonly Mark[], y: number, xOf: (ms: number) => number): string => {
  const parts: string[] = [];
  marks.forEach(({ kind, atMs }, index) => {
    const next = marks[index + 1];
    const x = xOf(atMs);
    if (next !== undefined) {
      const waits = STARTS.has(kind) ? '' : ' stroke-dasharray="2 4"';
      parts.push(`<line x1="${x}" y1="${y}" x2="${xOf(next.atMs)}" y2="${y}" stroke="#57606a"${waits}/>`);
    }
    const { sign, colour } = SIGNS[kind];
    parts.push(
      sign === ''
        ? `<circle cx="${x}" cy="${y}" r="3" fill="none" stroke="${colour}"/>`
        : `<text x="${x}" y="${y + 5}" text-anchor="middle" fill="${colour}">${sign}</text>`,
    );
  });
  return parts.join('');
};

/** The least room that a time has on the axis, in pixels. */
const STEP = 67.5;

/** 1, 2 or 5 times a power of ten: as many as have room on the axis. */
const stepOf = (spanMs: number, pixels: number): number => {
  const least = (spanMs * STEP) / pixels;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? least;
};

const axisOf = (spanMs: number, height: number, x: (ms: number) => number): string => {
  const parts: string[] = [];
  const step = stepOf(spanMs, x(spanMs) - x(0));
  for (let ms = 0; ms <= spanMs; ms += step)
    parts.push(
      `<line x1="${x(ms)}" y1="22" x2="${x(ms)}" y2="${height - 8}" stroke="#d0d7de"/><text x="${x(ms)}" y="16" ` +
        `text-anchor="middle" fill="#57606a">${duration(ms)}</text>`,
    );
  return parts.join('');
};

/** A line of a diagram: whose it is, its signs, and how it ended. */
export interface MarbleLine {
  readonly label: string;
  readonly marks: readonly Mark[];
  readonly note: string;
}

/** What a diagram is drawn of. */
export interface MarbleDrawing {
  readonly title: string;
  readonly lines: readonly MarbleLine[];
  /** What the left edge is, on the clock of the events. */
  readonly startMs: number;
  /** What the right edge is. */
  readonly endMs: number;
  /** Where the wall stands; absent without one. */
  readonly deadlineMs?: number;
  /** How wide it is, in pixels. */
  readonly width?: number;
}

/** Lines of signs over one axis of time, as SVG. It refers to nothing outside, and all text in it is text. */
export function drawMarbles(drawing: MarbleDrawing): string {
  const { title, startMs, endMs, deadlineMs, width = WIDTH } = drawing;
  const lines = drawing.lines.slice(0, NODES_MAX);
  const spanMs = Math.max(1, endMs - startMs);
  const height = 40 + lines.length * ROW;
  const x = (ms: number): number => rounded(LEFT + (ms / spanMs) * (width - LEFT - RIGHT));
  const at = (ms: number): number => x(ms - startMs);
  const rows = lines.map(({ label, marks, note }, index) => {
    const y = 40 + index * ROW;
    return (
      `<text x="${LEFT - 14}" y="${y + 5}" text-anchor="end" fill="#1f2328">${escaped(fit(label))}</text>` +
      `${lineOf(marks, y, at)}<text x="${width - RIGHT + 16}" y="${y + 5}" fill="#57606a">${escaped(note)}</text>`
    );
  });
  const wall =
    deadlineMs === undefined
      ? ''
      : `<line x1="${at(deadlineMs)}" y1="22" x2="${at(deadlineMs)}" y2="${height - 8}" stroke="#bc4c00" ` +
        `stroke-width="2"/>`;
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const head = `${SVG} ${size} ${FONT} role="img" aria-label="${escaped(title)}"><title>${escaped(title)}</title>`;
  const back = '<rect width="100%" height="100%" fill="#ffffff"/>';
  return `${head}${back}${axisOf(spanMs, height, x)}${wall}${rows.join('')}</svg>\n`;
}

/** A node as a line of a diagram. */
export const marbleLine = ({ nodeId, marks, state, attempts }: NodeTold): MarbleLine => ({
  label: nodeId,
  marks,
  note: `${(state ?? 'running').replaceAll('_', ' ')}${attempts > 1 ? ` ×${attempts}` : ''}`,
});

/** When the last thing happened that a diagram of the turn shows. */
export const lastMarkMs = ({ nodes, settledMs, lastMs, deadlineMs }: TurnTold): number =>
  nodes
    .slice(0, NODES_MAX)
    .reduce(
      (last, { marks }) => Math.max(last, marks.at(-1)?.atMs ?? 0),
      Math.max(settledMs ?? lastMs, deadlineMs ?? 0),
    );

/**
 * A turn as a marble diagram in SVG, for a page of documentation or a pull request: a line for each node, from left to
 * right in time, with the signs of the command's own diagram. It refers to nothing outside, and all text in it is text.
 *
 * @example
 * const texts = [...emptyTrace().turns.values()].map((turn) => marblesSvg(turn));
 */
export function marblesSvg(turn: TurnTold): string {
  const { startMs, deadlineMs, status, turnId, nodes } = turn;
  return drawMarbles({
    title: `Turn ${turnId}: ${status}`,
    lines: nodes.map(marbleLine),
    startMs,
    endMs: lastMarkMs(turn),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
}
