import type { NodeState } from '../../contract/turn.ts';
import { timedLine } from './event-line.ts';
import { drawMarbles } from '../../inspect/share/marbles-text.ts';
import type { Recorded, RecordedCall, RecordedTurn } from '../trace/recorded.ts';
import { nodeTable, sentence } from './report.ts';
import { table } from './table.ts';
import type { Part, Style } from './terminal.ts';
import { duration, messageLine, plain } from './text.ts';
import type { NodeTold } from '../../inspect/model.ts';

const WELL: ReadonlySet<NodeState | undefined> = new Set<NodeState>(['succeeded', 'defaulted']);
const isWell = ({ state }: { readonly state?: NodeState }): boolean => WELL.has(state);

const COLOURS: Readonly<Record<string, Part>> = {
  success: 'value',
  unfinished: 'quiet',
  abandoned: 'cut',
  timeout: 'timeout',
  completed: 'completed',
  partial: 'partial',
  escalated: 'escalated',
  failed: 'failed',
};

/** A turn that ended as it was meant to, or a call that succeeded. */
export const succeeded = ({ status }: RecordedTurn | RecordedCall): boolean =>
  status === 'completed' || status === 'success';

/** How long a turn took, or for how long the trace tells of it. */
export function turnMs({ timeline, events }: RecordedTurn): number {
  return (timeline.settledMs ?? events.at(-1)?.atMs ?? timeline.startMs) - timeline.startMs;
}

/** The nodes of a turn whose end the trace does not have. */
const laneTable = (lanes: readonly NodeTold[], style: Style): string => {
  const rows = lanes.map(({ nodeId, toolName, state, marks, attempts, note }) => {
    const doing = marks.length === 0 ? 'waiting' : 'running';
    return [nodeId, toolName, (state ?? doing).replaceAll('_', ' '), String(attempts), note];
  });
  return table(['node', 'tool', 'state', 'tries', 'result'], rows, {
    columns: style.columns,
    columnMax: 28,
    ellipsis: style.glyphs.ellipsis,
  }).join('\n');
};

const NOT_ENDED: Readonly<Record<string, string>> = {
  unfinished: 'The trace ends before the turn does.',
  abandoned: 'Its caller unsubscribed before it settled.',
};

/** What happened to the nodes of a turn that did not succeed, event by event. */
const story = ({ events, timeline }: RecordedTurn, nodes: ReadonlySet<string>): string =>
  events
    .flatMap((event) =>
      'nodeId' in event && event.nodeId !== undefined && nodes.has(plain(event.nodeId))
        ? (timedLine(event, timeline.startMs) ?? [])
        : [],
    )
    .join('');

/**
 * A turn in full: its table, its diagram, its sentence.
 * @param failed only the nodes that did not succeed, and what happened to them
 */
export function turnReport(turn: RecordedTurn, style: Style, failed: boolean): string {
  const { timeline, result, status } = turn;
  const lanes = failed ? timeline.nodes.filter((lane) => !isWell(lane)) : timeline.nodes;
  const shown = new Set(lanes.map(({ nodeId }) => nodeId));
  const nodes = result?.nodes.filter(({ id }) => shown.has(plain(id))) ?? [];
  const head = result === undefined ? laneTable(lanes, style) : nodeTable({ ...result, nodes }, style);
  const end =
    result === undefined ? `${style.paint('quiet', `${status}:`)} ${NOT_ENDED[status]}` : sentence(result, style);
  if (failed && lanes.length === 0) return `every node succeeded\n\n${end}\n`;
  const told = failed ? `${story(turn, shown)}\n` : '';
  return `${head}\n\n${drawMarbles({ ...timeline, nodes: lanes }, style)}\n\n${told}${end}\n`;
}

const painted =
  (style: Style, column: number, statuses: readonly string[]): ((row: number, at: number, text: string) => string) =>
  (row, at, text) => {
    if (row === -1) return style.paint('quiet', text);
    return at === column ? style.paint(COLOURS[statuses[row] ?? ''] ?? 'error', text) : text;
  };

const words = (status: string): string => status.replaceAll('_', ' ');

const turnList = (turns: readonly RecordedTurn[], style: Style): string[] => {
  const rows = turns.map((turn) => {
    const { number, turnId, status, timeline, result } = turn;
    return [
      String(number),
      turnId,
      words(status),
      String(timeline.nodes.length),
      duration(turnMs(turn)),
      result?.summary ?? NOT_ENDED[status] ?? '',
    ];
  });
  const paint = painted(
    style,
    2,
    turns.map(({ status }) => status),
  );
  return table(['#', 'turn', 'status', 'nodes', 'time', 'summary'], rows, {
    columns: style.columns,
    ellipsis: style.glyphs.ellipsis,
    paint,
  });
};

const callList = (calls: readonly RecordedCall[], style: Style): string[] => {
  const rows = calls.map(({ callId, toolName, status, result, startMs, endMs }) => {
    const attempts = result === undefined ? '' : String(result.attempts);
    return [
      callId,
      toolName,
      words(status),
      attempts,
      duration(result?.durationMs ?? endMs - startMs),
      result?.error?.message ?? '',
    ];
  });
  const paint = painted(
    style,
    2,
    calls.map(({ status }) => status),
  );
  return table(['call', 'tool', 'status', 'tries', 'time', 'error'], rows, {
    columns: style.columns,
    columnMax: 36,
    ellipsis: style.glyphs.ellipsis,
    paint,
  });
};

/** What happened in a call, event by event. */
const callStory = ({ callId, toolName, startMs, events }: RecordedCall): string =>
  `${messageLine(`${toolName} ${callId}`)}\n${events.flatMap((event) => timedLine(event, startMs) ?? []).join('')}`;

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

const counted = (all: readonly (RecordedTurn | RecordedCall)[], what: string): string => {
  const failures = all.filter((one) => !succeeded(one)).length;
  const outcome = failures === 0 ? 'all of which succeeded' : `${failures} of which did not succeed`;
  return `${many(all.length, what)}, ${outcome}`;
};

/** The turns and the other calls of a trace as lists. */
export function overview({ turns, calls }: Recorded, style: Style): string {
  const parts = [
    ...(turns.length === 0 ? [] : [[counted(turns, 'turn'), ...turnList(turns, style)]]),
    ...(calls.length === 0
      ? []
      : [[counted(calls, turns.length === 0 ? 'call' : 'other call'), ...callList(calls, style)]]),
  ];
  return parts.map((lines) => `${lines.join('\n')}\n`).join('\n');
}

/** What did not succeed in a trace, in full. */
export function failures({ turns, calls }: Recorded, style: Style): string {
  const failed = { turns: turns.filter((turn) => !succeeded(turn)), calls: calls.filter((call) => !succeeded(call)) };
  if (failed.turns.length + failed.calls.length === 0)
    return `nothing failed: ${many(turns.length, 'turn')}, ${many(calls.length, 'other call')}\n`;
  const several = turns.length + calls.length > 1;
  const reports = failed.turns.map((turn) => {
    const title = style.paint('strong', messageLine(`turn ${turn.number}: ${turn.turnId}`));
    return `${several ? `${title}\n` : ''}${turnReport(turn, style, true)}`;
  });
  const lists =
    failed.calls.length === 0 ? [] : [`${callList(failed.calls, style).join('\n')}\n`, ...failed.calls.map(callStory)];
  return [...reports, ...lists].join('\n');
}
