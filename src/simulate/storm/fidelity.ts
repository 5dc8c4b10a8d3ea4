import { Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { AnyTool, ToolContext } from '../../contract/tool.ts';
import { createSpillway, type Spillway } from '../../spillway.ts';
import type { Plan } from '../../contract/turn.ts';
import { plan } from '../../turn/plan.ts';
import type { SimulatedTime } from '../time.ts';
import { streamOf } from './chance.ts';
import { actsAgain, budgetFor, defaultsFor, policyFor, type Ended, type Engine, type EngineParts } from './engine.ts';

/** The production layer itself, in simulated time: every operator, timer and turn is the one that ships. */
export class FidelityEngine implements Engine {
  readonly #spillway: Spillway;
  readonly #parts: EngineParts;
  readonly #plans: ReadonlyMap<string, Plan>;

  constructor(parts: EngineParts, seed: number) {
    this.#parts = parts;
    const { scenario, time, breakerChanged } = parts;
    const names = Object.keys(scenario.tools);
    this.#spillway = createSpillway({
      tools: names.map((name) => this.#toolOf(name)),
      defaults: defaultsFor(parts),
      retryBudget: budgetFor(parts),
      runtime: runtimeOf(time, streamOf(seed, `jitter ${parts.process}`)),
    });
    for (const name of names)
      if (this.#spillway.tools.some((tool) => tool.name === name))
        this.#spillway.breakers.get(name).state$.subscribe(({ type }) => breakerChanged(name, type));
    this.#plans = new Map(
      Object.entries(scenario.plans ?? {}).map(([name, { nodes, timeout_ms: timeoutMs }]) => [
        name,
        plan.from(
          nodes.map((node) => ({ ...node, input: {} })),
          timeoutMs === undefined ? {} : { timeoutMs },
        ),
      ]),
    );
  }

  call(toolName: string, ended: (end: Ended) => void): void {
    this.#spillway.call({ toolName, input: {} }).subscribe((event) => {
      if (event.type !== 'settled') return;
      const { status } = event.result;
      ended({ succeeded: status === 'success', refused: status === 'circuit_open' });
    });
  }

  turn(planName: string, ended: (end: Ended) => void): void {
    const planned = this.#plans.get(planName);
    if (planned === undefined) throw new RangeError(`there is no plan ${planName}`);
    this.#spillway.turn(planned).subscribe((event) => {
      if (event.source !== 'turn' || event.type !== 'settled') return;
      ended({ succeeded: event.result.status === 'completed', refused: false });
    });
  }

  #toolOf(name: string): AnyTool {
    const { scenario, servers, tally, time } = this.#parts;
    const { server } = scenario.tools[name] ?? { server: '' };
    const acts = actsAgain(this.#parts, name);
    const asked = servers.get(server);
    if (asked === undefined) throw new RangeError(`tool ${name}: there is no server ${server}`);
    return {
      name,
      policy: policyFor(this.#parts, name),
      execute: (_: never, { attempt, callKey: key }: ToolContext) =>
        new Observable((subscriber) => {
          tally.attempt(time.now(), attempt === 1);
          const question = asked.ask({
            key,
            ...(acts ? { acted: () => tally.acted(key) } : {}),
            answered: (error) => {
              if (error !== undefined) return subscriber.error(error);
              subscriber.next(0);
              subscriber.complete();
            },
          });
          return () => question.cancel();
        }),
    };
  }
}

/** The same time for all processes, and each its own chance. */
const runtimeOf = ({ now, wallNow, after, id }: SimulatedTime, random: () => number): Runtime => ({
  now,
  wallNow,
  after,
  id,
  random,
});
