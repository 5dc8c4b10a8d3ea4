import { repeat, type Subscription } from 'rxjs';
import type { TurnEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { timedLine } from './event-line.ts';
import type { NodeTold } from '../../inspect/model.ts';
import { followTurn } from '../../inspect/model/follow-turn.ts';
import type { Output, Style } from './terminal.ts';
import { columnsOf, duration, fit, messageLine, pad, plain } from './text.ts';

/** What is shown on stderr while a turn runs. */
export interface ProgressDisplay {
  event(event: TurnEvent): void;
  /** Something to say besides. */
  note(text: string): void;
  /** Ends the showing; nothing is left of what was live. */
  end(): void;
}

/** Often enough to look alive: 12 times a second. */
const FRAME_MS = 80;

/** A line for each event, with the time since the turn's start. */
export function lineProgress(output: Output): ProgressDisplay {
  let startMs: number | undefined;
  return {
    event: (event) => {
      startMs ??= event.atMs;
      const line = timedLine(event, startMs);
      if (line !== undefined) output.write(line);
    },
    note: (text) => void output.write(`${messageLine(text)}\n`),
    end: () => undefined,
  };
}

const laneLine = (lane: NodeTold, labelColumns: number, nowMs: number, { columns, glyphs, paint }: Style): string => {
  const label = pad(fit(lane.nodeId, labelColumns, glyphs.ellipsis), labelColumns);
  const last = lane.marks.at(-1);
  const sign = last === undefined ? ' ' : paint(last.kind, glyphs.marks[last.kind]);
  const running =
    last === undefined
      ? 'waiting'
      : `${lane.toolName} ${duration(nowMs - last.atMs)}${lane.attempts > 1 ? `, attempt ${lane.attempts}` : ''}`;
  const text = lane.state === undefined ? running : lane.state.replaceAll('_', ' ');
  const note = lane.note === '' ? '' : `  ${plain(lane.note)}`;
  return (
    `${sign} ${label}  ` +
    paint(lane.state ?? 'quiet', fit(text + note, Math.max(8, columns - labelColumns - 5), glyphs.ellipsis))
  );
};

const order = ({ state, marks }: NodeTold): number => (state === undefined ? (marks.length > 0 ? 0 : 1) : 2);

/**
 * The nodes of the turn in place, redrawn while they change; as many as the terminal has lines for, running ones first.
 */
export function liveProgress(output: Output, style: Style, runtime: Runtime): ProgressDisplay {
  const followed = followTurn();
  let drawn = 0;
  let frames: Subscription | undefined;
  const erased = (): string => (drawn === 0 ? '' : `\u001b[${drawn}A\r\u001b[J`);
  const draw = (): void => {
    const { turn } = followed;
    const room = Math.max(1, (output.rows ?? 24) - 3);
    const lanes =
      turn.nodes.length <= room ? turn.nodes : turn.nodes.toSorted((a, b) => order(a) - order(b)).slice(0, room);
    const labelColumns = Math.min(
      24,
      lanes.reduce((most, { nodeId }) => Math.max(most, columnsOf(nodeId)), 0),
    );
    const nowMs = runtime.now();
    const done = turn.nodes.filter(({ state }) => state !== undefined).length;
    const passed = `${duration(nowMs - turn.startMs)} of ${duration(turn.timeoutMs)}`;
    const head = `${passed}, ${done} of ${turn.nodes.length} done`;
    const lines = [
      style.paint('quiet', fit(head, style.columns - 1, style.glyphs.ellipsis)),
      ...lanes.map((lane) => laneLine(lane, labelColumns, nowMs, style)),
    ];
    // A synchronised update: the terminal shows it whole, without flicker.
    output.write(`\u001b[?2026h${erased()}${lines.join('\n')}\n\u001b[?2026l`);
    drawn = lines.length;
  };
  return {
    event: (event) => {
      followed.add(event);
      frames ??= (runtime.background ?? runtime).after(FRAME_MS).pipe(repeat()).subscribe(draw);
    },
    note: (text) => {
      output.write(`${erased()}${messageLine(text)}\n`);
      drawn = 0;
    },
    end: () => {
      frames?.unsubscribe();
      if (drawn > 0) output.write(erased());
      drawn = 0;
    },
  };
}
