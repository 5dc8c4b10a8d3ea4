import { EMPTY, Subject, firstValueFrom, merge, take, takeUntil, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { LineSource } from './event-log.ts';

/** How often a client is told the time, so that it knows that all is well, and can count down. */
const CLOCK_MS = 1_000;

const message = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Where a client stands that comes back. */
export interface Place {
  /** From where it is told. */
  readonly id: number;
  /** What it knows is of another process. */
  readonly isStrange: boolean;
}

/** The place that a client names by the last id it got: `<run>-<place>`. */
export function placeIn(given: string | null, { run }: LineSource): Place {
  const [, of, id = '0'] = /^([\da-f]{1,64})-(\d{1,16})$/.exec(given ?? '') ?? [];
  const isStrange = of !== run;
  return { id: isStrange ? 0 : Number(id), isStrange: isStrange && given !== null && given !== '' };
}

/** The next thing that happens: more lines, the next tick, or the end. */
const awaited = (source: LineSource, runtime: Runtime, end$: Observable<unknown>): Promise<unknown> =>
  firstValueFrom(
    merge(source.isOver ? EMPTY : source.more$, (runtime.background ?? runtime).after(CLOCK_MS)).pipe(
      take(1),
      takeUntil(end$),
    ),
    { defaultValue: 0 },
  );

/** Keeps what comes between two looks. */
const noting = (
  source: LineSource,
  end$: Observable<unknown>,
): { readonly taken: () => boolean; readonly stop: () => void } => {
  let noted = false;
  const stop$ = new Subject<void>();
  source.more$.pipe(takeUntil(merge(end$, stop$))).subscribe(() => (noted = true));
  return {
    taken: () => {
      const was = noted;
      noted = false;
      return was;
    },
    stop: () => stop$.next(),
  };
};

/**
 * The lines of a source as server-sent events, from a place on and for ever: messages of lines, with the place after
 * them as their id, `lost` where some are not kept any more, `anew` where the client knows another process's, and
 * `clock` each second. It ends with `end`.
 */
export async function* eventStream(
  source: LineSource,
  from: Place,
  runtime: Runtime,
  end$: Observable<unknown>,
): AsyncGenerator<string, void, undefined> {
  const ended = new AbortController();
  end$.pipe(take(1)).subscribe(() => ended.abort());
  const notes = noting(source, end$);
  let at = from.id;
  try {
    yield `retry: 500\n\n${message('clock', { nowMs: source.nowMs() })}`;
    if (from.isStrange) yield message('anew', {});
    while (!ended.signal.aborted) {
      const { nextId, lines, lost } = await source.read(at);
      if (lost > 0) yield message('lost', { count: lost });
      if (lines.length > 0 || nextId !== at)
        yield `id: ${source.run}-${nextId}\nevent: lines\n${lines.map((line) => `data: ${line}\n`).join('')}\n`;
      const moved = nextId !== at;
      at = nextId;
      if (moved || notes.taken()) continue;
      if (source.isOver) break;
      yield message('clock', { nowMs: source.nowMs() });
      // What came while that went out is not waited for.
      if (!notes.taken()) await awaited(source, runtime, end$);
    }
    yield message('end', {});
  } finally {
    notes.stop();
  }
}
