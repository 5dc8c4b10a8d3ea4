import { catchError, defer, firstValueFrom, map, merge, of, take } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Inspect, LayerState } from './tool-meters.ts';

/** How long a layer may take to say how it stands, by default. */
export const INSPECT_TIMEOUT_MS = 1_000;

/** What a layer says of itself; nothing where it fails, or does not answer in time. */
export const stateOf = (
  inspect: Inspect,
  withinMs: number,
  runtime: Pick<Runtime, 'after'>,
): Promise<LayerState | undefined> =>
  firstValueFrom(
    merge(
      defer(async () => inspect()).pipe(catchError(() => of(undefined))),
      runtime.after(withinMs).pipe(map(() => undefined)),
    ).pipe(take(1)),
  );
