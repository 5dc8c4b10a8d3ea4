import { filter, map, type Observable } from 'rxjs';
import { ToolExecutionError, isToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { CallKey } from '../policy/key/call-key.ts';
import type { CallContext } from './context.ts';
import type { HookRunner } from '../layer/hooks.ts';
import { keyOf } from './idempotency.ts';
import { obstacleTo } from './cancellation.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { readInput } from './request.ts';
import { ShadowWatch } from './shadow.ts';

/** What a call is to do, once its request was looked at. */
export type CallStep =
  | {
      readonly act: 'try';
      readonly guarded: GuardedTool;
      readonly input: unknown;
      readonly alternatives: readonly string[];
      /** What it is to run once under. */
      readonly key?: CallKey | undefined;
    }
  | { readonly act: 'refuse'; readonly error: ToolExecutionError };

/**
 * From the request to the tool: `switches(prepareCall(validate(dedupe(...))))`. Without a hook and a key it is known at
 * once.
 */
export function callSteps(
  context: CallContext,
  tool: GuardedTool | undefined,
  malformed: ToolExecutionError | undefined,
): CallStep | Observable<CallStep> {
  const { layer, call } = context;
  const guarded = tool ?? layer.registry.get(call.toolName);
  context.resolved = guarded;
  const obstacle = malformed ?? obstacleTo(context);
  if (obstacle !== undefined) return { act: 'refuse', error: obstacle };
  if (guarded === undefined)
    return { act: 'refuse', error: new ToolExecutionError('unknown_tool', `No tool is named ${call.toolName}`) };
  if (layer.hooks === undefined) return passed(context, guarded);
  return prepared(layer.hooks, context, guarded);
}

/** Asks the host's hook, which may change the call or refuse it. */
const prepared = (hooks: HookRunner, context: CallContext, guarded: GuardedTool): Observable<CallStep> =>
  hooks.prepare({ context, guarded, input: context.call.input }).pipe(
    // A subscriber of the hook's event may have ended the call.
    filter(() => !context.isOver),
    map((answer) => {
      if (isToolExecutionError(answer)) return { act: 'refuse', error: answer };
      context.prepare(answer);
      return passed(context, guarded);
    }),
  );

/** Through the switches and the schema, to what it is to do under which key. */
const passed = (context: CallContext, guarded: GuardedTool): CallStep => {
  const { layer, call } = context;
  const mode = context.mode ?? layer.switches.modeOf(guarded.mode);
  if (mode !== 'on') return passedBy(context, guarded, mode === 'shadow');
  const { input, error } = readInput(guarded.tool.input, call.input);
  if (error !== undefined) return { act: 'refuse', error };
  context.input = input;
  try {
    return { act: 'try', guarded, input, alternatives: guarded.alternatives, key: keyOf(context, guarded) };
  } catch (thrown) {
    return { act: 'refuse', error: toToolExecutionError(thrown) };
  }
};

/** Straight through to the tool; in shadow mode with a note of what the layer would have done. */
const passedBy = (context: CallContext, guarded: GuardedTool, shadow: boolean): CallStep => {
  context.goBare();
  if (shadow) context.shadow = new ShadowWatch(context, guarded);
  return { act: 'try', guarded: guarded.bare(), input: context.call.input, alternatives: [] };
};
