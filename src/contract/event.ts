import type { ToolEvent } from './event/call.ts';
import type { LayerEvent } from './event/layer.ts';
import type { TurnOwnEvent } from './event/turn.ts';

export type { ApprovalEvent, ApprovalStep, BudgetEvent } from './event/gate.ts';
export type { BreakerAtStart, CallTerms } from './event/terms.ts';
export type { DedupeStep } from './event/key.ts';
export type { ErrorReport, HookName, ShadowAct, ToolEvent } from './event/call.ts';
export type { HostPart, LayerEvent, PolicyInForce, ToolInForce } from './event/layer.ts';
export type { TurnOwnEvent } from './event/turn.ts';

/** A turn's stream: its own events and those of its calls. The last one is the turn's `settled`. */
export type TurnEvent = ToolEvent | TurnOwnEvent;

/**
 * Everything that happens in a layer: one union, one sequence. Of inputs and outputs it holds no more than the parts
 * that `capture` lists.
 */
export type TraceEvent = TurnEvent | LayerEvent;
