import { lastValueFrom, toArray } from 'rxjs';
import type { AnyTool } from 'spillway';
import {
  runAgent,
  type AgentEvent,
  type AgentMessage,
  type AgentOptions,
  type AgentResult,
  type ScriptedModel,
  type ToolResult,
  type ScriptedStep,
  scriptedModel,
} from '../../src/agent/index.ts';
import type { World, Scripted, Seen } from '../call/kit.ts';

export const asked: readonly AgentMessage[] = [{ role: 'user', content: 'Book me a trip' }];

/** What a settled run came to. */
export function resultOf(events: readonly AgentEvent[]): AgentResult {
  const last = events.at(-1);
  if (last?.type !== 'settled') throw new Error(`the run's last event is ${last?.type}`);
  return last.result;
}

/** All results of a run, in the order in which they were given. */
export const resultsOf = (events: readonly AgentEvent[]): ToolResult[] =>
  events.flatMap((event) => (event.type === 'tool_result' ? [event.result] : []));

/** The events of one type. */
export const typed = <K extends AgentEvent['type']>(
  events: readonly AgentEvent[],
  type: K,
): Array<Extract<AgentEvent, { type: K }>> =>
  events.filter((event): event is Extract<AgentEvent, { type: K }> => event.type === type);

/** The events of the loop itself, by type. */
export const story = (events: readonly AgentEvent[]): string[] =>
  events.filter(({ type }) => type !== 'tools').map(({ type }) => type);

export interface Watched extends Seen<AgentEvent> {
  readonly model: ScriptedModel;
}

/** A run in virtual time; nothing has happened yet when it is given. */
export function begun(
  world: World,
  script: readonly ScriptedStep[],
  tools: readonly Scripted[],
  options: Partial<AgentOptions> = {},
): Watched {
  const model = scriptedModel(script);
  const offered = tools.map(({ tool }) => tool);
  const run$ = runAgent({
    model,
    spillway: world.layer(tools),
    tools: offered,
    messages: asked,
    runtime: world.runtime,
    ...options,
  });
  return Object.assign(world.watch(run$), { model });
}

/** A run to its end, in virtual time. */
export function ran(
  world: World,
  script: readonly ScriptedStep[],
  tools: readonly Scripted[],
  options: Partial<AgentOptions> = {},
): Watched {
  const seen = begun(world, script, tools, options);
  world.flush();
  return seen;
}

/** A run in real time. */
export const lived = (options: AgentOptions): Promise<AgentEvent[]> => lastValueFrom(runAgent(options).pipe(toArray()));

export const named = (tools: readonly AnyTool[]): string[] => tools.map(({ name }) => name);
