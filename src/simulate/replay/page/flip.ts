import { told } from '../../../inspect/compare.ts';
import type { TurnTold } from '../../../inspect/model.ts';
import { drawMarbles, lastMarkMs, marbleLine } from '../../../inspect/share/marbles-svg.ts';
import { duration } from '../../../inspect/text.ts';
import type { Flip } from '../outcomes.ts';
import { outcomeText } from '../report.ts';
import { row, table, words } from './markup.ts';
import type { DrawnCall, Side } from './sides.ts';

/** Two of them stand beside each other on a usual screen. */
const WIDTH = 640;

/** What was recorded, and what the other policy makes of it. */
export type Pair<T> = readonly [recorded: T, replayed: T];

const SIDES: Pair<string> = ['Recorded', 'With the other policy'];

const figures = (pictures: readonly (string | undefined)[]): string => {
  const shown = pictures.map(
    (picture, side) =>
      `<figure><figcaption>${SIDES[side]}</figcaption>${picture ?? '<p>Not made on this side.</p>'}</figure>`,
  );
  return `<div class="pair">${shown.join('')}</div>`;
};

/** Both sides over one axis of time, so that what is longer is longer. */
const callFigures = ({ toolName, nodeId, before, after }: Flip, sides: Pair<DrawnCall | undefined>): string => {
  const there = sides.flatMap((side) => side ?? []);
  const startMs = Math.min(...there.map((side) => side.startMs));
  const endMs = Math.max(...there.map((side) => side.endMs));
  const draw = (side: DrawnCall | undefined, index: number): string | undefined => {
    if (side === undefined) return undefined;
    const note = (index === 0 ? before : after).status.replaceAll('_', ' ');
    const lines = [{ label: nodeId ?? toolName, marks: side.marks, note }];
    return drawMarbles({ title: `${SIDES[index]}: ${note}`, lines, startMs, endMs, width: WIDTH });
  };
  return figures(sides.map(draw));
};

const attemptText = (side: DrawnCall | undefined, index: number): string => {
  const attempt = side?.call.attempts[index];
  if (attempt === undefined) return '';
  const { startMs, endMs, decision } = attempt;
  const took = endMs === undefined || attempt.outcome === 'rejected' ? '' : ` after ${duration(endMs - startMs)}`;
  const wait = decision?.delayMs === undefined ? '' : ` in ${duration(decision.delayMs)}`;
  return words(`${told(attempt)}${took === '' ? '' : `,${took}`}${wait === '' ? '' : `; again${wait}`}`);
};

/** What was decided of each attempt, on both sides; what differs is marked. */
const attemptTable = (sides: Pair<DrawnCall | undefined>, { before, after }: Flip): string => {
  const count = Math.max(...sides.map((side) => side?.call.attempts.length ?? 0));
  const rows = Array.from({ length: count }, (_, index) => {
    const [a = '', b = ''] = sides.map((side) => attemptText(side, index));
    const [first, second] = sides.map((side) => side?.call.attempts[index]);
    const same = first !== undefined && second !== undefined && told(first) === told(second);
    return row([`attempt ${index + 1}`, a, b], 'td', same ? '' : ' class="differs"');
  });
  const ends = [before, after].map((outcome) => {
    const took = outcome.status === 'not_made' ? '' : `, ${duration(outcome.durationMs)}`;
    return words(`${outcomeText(outcome)}${took}`);
  });
  return table(['', ...SIDES], [...rows, row(['ends', ...ends], 'td', ' class="differs"')]);
};

const turnFigures = (turns: Pair<TurnTold | undefined>): string => {
  const there = turns.flatMap((turn) => turn ?? []);
  const startMs = Math.min(...there.map((turn) => turn.startMs));
  const endMs = Math.max(...there.map(lastMarkMs));
  const draw = (turn: TurnTold | undefined, index: number): string | undefined => {
    if (turn === undefined) return undefined;
    const { status, nodes, deadlineMs } = turn;
    const wall = deadlineMs === undefined ? {} : { deadlineMs };
    const title = `${SIDES[index]}: the turn is ${status}`;
    return drawMarbles({ title, lines: nodes.map(marbleLine), startMs, endMs, width: WIDTH, ...wall });
  };
  return figures(turns.map(draw));
};

/** Its turn, once; where another flip of that turn came before, it is linked to. */
const turnOf = ({ turnId }: Flip, sides: Pair<Side>, drawn: Map<string, string>, id: string): string => {
  if (turnId === undefined) return '';
  const known = drawn.get(turnId);
  if (known !== undefined) return `<p><a href="#${known}">The whole turn</a> stands above.</p>`;
  drawn.set(turnId, id);
  const [recorded, replayed] = sides;
  const both = turnFigures([recorded.turn(turnId), replayed.turn(turnId)]);
  return `<details open id="${id}"><summary>The whole turn ${words(turnId)}</summary>${both}</details>`;
};

/**
 * A flipped call: how it ended on both sides, its marbles beside each other, and each decision beside the other.
 * @param drawn where each turn stands that was drawn already
 * @param id of the place on the page
 */
export function flipHtml(flip: Flip, sides: Pair<Side>, drawn: Map<string, string>, id: string): string {
  const { callId, toolName, nodeId, change, before, after } = flip;
  const calls = [sides[0].call(callId), sides[1].call(callId)] as const;
  const whose = nodeId === undefined ? toolName : `${nodeId} (${toolName})`;
  const ended = `${outcomeText(before)} → ${outcomeText(after)}`;
  return (
    `<article class="flip ${change}" data-call="${words(callId)}" id="${id}">` +
    `<h3><b>${change}</b> ${words(whose)}: ${words(ended)}</h3><p class="id">call ${words(callId)}</p>` +
    `${callFigures(flip, calls)}${attemptTable(calls, flip)}${turnOf(flip, sides, drawn, `${id}-turn`)}</article>`
  );
}
