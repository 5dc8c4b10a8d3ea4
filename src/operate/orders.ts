import { checkOneOf } from '../policy/check.ts';
import type { BreakerOrder } from '../layer/breakers.ts';
import { breakerReport, type BreakerReport } from './inspection.ts';
import type { Layer } from '../layer/services.ts';
import type { GuardedTool } from '../layer/registry.ts';

/** Which breakers an order is for: those of a registered tool, those known by another name, or all. */
export type BreakerTarget =
  | {
      /** The name of a registered tool, or of a breaker that `inspect()` lists. */
      readonly tool: string;
    }
  | {
      /** All breakers of the layer. */
      readonly all: true;
    };

/** What came of an order. */
export interface OrderReport {
  /** The breakers that got the order, as they stand now. */
  readonly breakers: readonly BreakerReport[];
  /** Why it does not act yet, a sentence each: a switch is thrown. */
  readonly warnings: readonly string[];
}

const NAMED_MAX = 10;

/** What may guard a tool: the breaker that it shares, and one of its own, which a call can ask for. */
const namesOf = ({ tool, breakerName }: GuardedTool): readonly string[] => [breakerName, tool.name];

const guardedOf = ({ breakers, registry }: Layer, name: string): GuardedTool | undefined => {
  const guarded = registry.get(name);
  if (guarded === undefined && !breakers.list().some(({ toolName }) => toolName === name))
    throw new RangeError(
      `there is no tool ${JSON.stringify(name.slice(0, 64))} and no breaker of that name; inspect() lists both`,
    );
  if (guarded !== undefined && guarded.breaker === undefined)
    throw new RangeError(`tool ${name} has no breaker (policy.breaker is false); give it one, or set its mode`);
  return guarded;
};

const allOf = ({ registry }: Layer): GuardedTool[] => {
  const { names } = registry;
  return names.flatMap((name) => registry.get(name) ?? []);
};

const warningsOf = ({ switches }: Layer, guarded: readonly GuardedTool[]): string[] => {
  const idle = guarded
    .filter(({ mode, breaker }) => breaker !== undefined && switches.modeOf(mode) !== 'on')
    .map(({ tool }) => tool.name);
  const more = idle.length > NAMED_MAX ? ` and ${idle.length - NAMED_MAX} more` : '';
  return [
    ...(idle.length > 0
      ? [
          'breakers refuse nothing in the modes off and shadow, in which ' +
            `${idle.slice(0, NAMED_MAX).join(', ')}${more} run`,
        ]
      : []),
    ...(switches.breakersObserve ? ['breakers refuse nothing while TOOL_RELIABILITY_OPEN_MODE is off'] : []),
  ];
};

/**
 * Gives an order to breakers, in every scope, those to come included. It stands until the next one; `reset` also closes
 * what processes share.
 * @throws RangeError for a name that neither a tool nor a breaker has, and for a tool without a breaker: nothing was
 * changed
 * @throws ToolExecutionError `store_unavailable`, when own breakers are reset and shared ones could not be
 */
export async function orderBreakers(layer: Layer, order: BreakerOrder, what: BreakerTarget): Promise<OrderReport> {
  checkOneOf('order', order, ['force_open', 'reset', 'disable']);
  const { breakers, sharedBreakers } = layer;
  const one = 'tool' in what ? guardedOf(layer, what.tool) : undefined;
  const guarded = 'tool' in what ? (one === undefined ? [] : [one]) : allOf(layer);
  const present = new Set(breakers.list().map(({ toolName }) => toolName));
  for (const { breakerName, breaker } of order === 'reset' ? [] : guarded) {
    // Made where there is none yet, so that the order is seen to stand.
    if (breaker !== undefined && !present.has(breakerName)) breakers.get(breakerName, '', breaker);
    present.add(breakerName);
  }
  const names = [
    ...new Set(
      'tool' in what ? (one === undefined ? [what.tool] : namesOf(one)) : [...present, ...guarded.flatMap(namesOf)],
    ),
  ];
  const told = breakers.order(order, 'tool' in what ? names : undefined).map(breakerReport);
  if (order === 'reset') await sharedBreakers?.forget(names);
  return { breakers: told, warnings: order === 'force_open' ? warningsOf(layer, guarded) : [] };
}
