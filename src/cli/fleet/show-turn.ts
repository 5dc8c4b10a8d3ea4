import { lastValueFrom, map, takeUntil, tap, fromEvent, type Observable } from 'rxjs';
import type { TraceEvent, TurnEvent } from '../../contract/event.ts';
import type { TurnResult } from '../../contract/turn.ts';
import { ndjsonLine } from '../../sinks/ndjson.ts';
import type { RunContext } from '../run.ts';
import { drawMarbles } from '../../inspect/share/marbles-text.ts';
import { lineProgress } from '../show/progress.ts';
import { nodeTable, sentence } from '../show/report.ts';
import { shownEvents } from '../show/shown.ts';
import { styleOf } from '../show/terminal.ts';
import { followTurn } from '../../inspect/model/follow-turn.ts';

/** How a turn of a fleet is shown. */
export interface ShowOptions {
  readonly json: boolean;
  readonly ascii: boolean;
  readonly color: boolean;
}

const isTurnEvent = (event: TraceEvent): event is TurnEvent => event.source !== 'layer';

/** Shows a turn from its first event to its end; nothing once the signal is aborted, which leaves the turn alone. */
export async function showTurn(
  events$: Observable<TraceEvent>,
  options: ShowOptions,
  { stdout, stderr, signal }: RunContext,
): Promise<TurnResult | undefined> {
  if (signal.aborted) return undefined;
  const progress = lineProgress(stderr);
  const followed = followTurn();
  // The last one has the whole result.
  const shown = shownEvents();
  const result = await lastValueFrom(
    events$.pipe(
      map((event) => (isTurnEvent(event) ? shown(event) : event)),
      tap((event) => {
        if (!isTurnEvent(event)) return;
        followed.add(event);
        progress.event(event);
        if (options.json) stdout.write(ndjsonLine(event));
      }),
      map((event) => (event.source === 'turn' && event.type === 'settled' ? event.result : undefined)),
      takeUntil(fromEvent(signal, 'abort')),
    ),
    { defaultValue: undefined },
  );
  progress.end();
  if (result === undefined || options.json) return result;
  const style = styleOf(stdout, options);
  stdout.write(`${nodeTable(result, style)}\n\n${drawMarbles(followed.turn, style)}\n\n${sentence(result, style)}\n`);
  return result;
}
