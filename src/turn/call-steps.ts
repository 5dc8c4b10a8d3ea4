import { Observable, isObservable, of, switchMap } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { CallContext } from './call-context.ts';
import { ACQUIRING } from './call-state.ts';
import { dedupeSeat } from './dedupe-seat.ts';
import { obstacleTo } from './outside.ts';
import type { GuardedTool } from './registry.ts';
import { readInput } from './request.ts';
import type { CallOutcome } from './result.ts';
import { ShadowWatch } from './shadow.ts';

/** What a call is to do next. */
export type CallStep =
  | { readonly act: 'try'; readonly guarded: GuardedTool; readonly input: unknown; readonly alternatives: readonly string[] }
  /** Its tool must stop: it no longer holds its key, and another step follows. */
  | { readonly act: 'stop' }
  /** It ends with what another call found. */
  | { readonly act: 'end'; readonly outcome: CallOutcome }
  | { readonly act: 'refuse'; readonly error: ToolExecutionError };

/** From the request to the tool: `switches(prepareCall(validate(dedupe(...))))`. Without a hook and a key it is known at once. */
export function callSteps(context: CallContext, tool: GuardedTool | undefined, malformed: ToolExecutionError | undefined): CallStep | Observable<CallStep> {
  const { layer, call } = context;
  const guarded = tool ?? layer.registry.get(call.toolName);
  context.resolved = guarded;
  const obstacle = malformed ?? obstacleTo(context);
  if (obstacle !== undefined) return { act: 'refuse', error: obstacle };
  if (guarded === undefined) return { act: 'refuse', error: new ToolExecutionError('unknown_tool', `No tool is named ${call.toolName}`) };
  if (layer.hooks === undefined) return passed(context, guarded);
  return prepared(context, guarded).pipe(
    switchMap((refusal) => {
      const step = refusal === undefined ? passed(context, guarded) : ({ act: 'refuse', error: refusal } as const);
      return isObservable(step) ? step : of(step);
    }),
  );
}

/** Asks the host's hook, which may change the call or refuse it. */
const prepared = (context: CallContext, guarded: GuardedTool): Observable<ToolExecutionError | undefined> =>
  new Observable((subscriber) =>
    context.layer.hooks?.prepare({ record: context, guarded, input: context.call.input }, (preparation, error) => {
      if (subscriber.closed || context.isOver) return;
      if (error === undefined) context.prepare(preparation);
      subscriber.next(error);
    }),
  );

/** Through the switches and the schema, and to the key. */
const passed = (context: CallContext, guarded: GuardedTool): CallStep | Observable<CallStep> => {
  const { layer, call } = context;
  const mode = layer.switches.modeOf(guarded.mode);
  if (mode !== 'on') return passedBy(context, guarded, mode === 'shadow');
  const { input, error } = readInput(guarded.tool.input, call.input);
  if (error !== undefined) return { act: 'refuse', error };
  context.input = input;
  const step: CallStep = { act: 'try', guarded, input, alternatives: guarded.alternatives };
  return call.dedupeMode === 'disabled' ? step : keyed(context, guarded, step);
};

/** Straight through to the tool; in shadow mode with a note of what the layer would have done. */
const passedBy = (context: CallContext, guarded: GuardedTool, shadow: boolean): CallStep => {
  context.goBare();
  if (shadow) context.shadow = new ShadowWatch(context, guarded);
  return { act: 'try', guarded: guarded.bare(), input: context.call.input, alternatives: [] };
};

/** First gets its key, or what is remembered under it. */
const keyed = (context: CallContext, guarded: GuardedTool, step: CallStep): CallStep | Observable<CallStep> => {
  let tell: (next: CallStep) => void = () => undefined;
  const seat = dedupeSeat(
    context,
    {
      seatTaken: () => tell(step),
      seatReplayed: (outcome) => tell({ act: 'end', outcome }),
      seatRefused: (error) => tell({ act: 'refuse', error }),
      seatLost: () => tell({ act: 'stop' }),
      seatDeserted: () => context.desert(),
    },
    guarded,
  );
  if (seat instanceof ToolExecutionError) return { act: 'refuse', error: seat };
  if (seat === undefined) return step;
  context.seat = seat;
  return new Observable<CallStep>((subscriber) => {
    tell = (next) => subscriber.next(next);
    context.advance(ACQUIRING);
    seat.start();
  });
};
