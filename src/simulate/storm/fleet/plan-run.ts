import type { ScenarioPlanEntry } from '../../../contract/formats/scenario-entry.ts';
import { TURN_TIMEOUT_MS } from '../../../policy/profile.ts';
import type { SimulatedTime, Task } from '../../time.ts';
import type { Ended } from '../engine.ts';
import { givingWay } from './deadlines.ts';

type Node = ScenarioPlanEntry['nodes'][number];

/** Carries out calls until their turn ends. */
interface Calls {
  call(toolName: string, ended: (end: Ended) => void, untilMs: number): void;
}

/**
 * A turn without the streams around it: nodes begin once their needs have succeeded, and a deadline ends it. What runs
 * then goes on without it, as a turn's calls do where its plan does not say otherwise.
 */
export class PlanRun {
  readonly #entry: ScenarioPlanEntry;
  readonly #time: SimulatedTime;
  readonly #calls: Calls;
  readonly #ended: (end: Ended) => void;
  readonly #begun = new Set<string>();
  readonly #settled = new Map<string, boolean>();
  #untilMs = Infinity;
  #deadline: Task | undefined;
  #over = false;

  constructor(entry: ScenarioPlanEntry, time: SimulatedTime, calls: Calls, ended: (end: Ended) => void) {
    this.#entry = entry;
    this.#time = time;
    this.#calls = calls;
    this.#ended = ended;
  }

  start(): void {
    this.#untilMs = this.#time.now() + (this.#entry.timeout_ms ?? TURN_TIMEOUT_MS);
    this.#next();
    if (this.#over) return;
    this.#deadline = this.#time.at(this.#untilMs, 0, () => {
      this.#deadline = givingWay(this.#time, () => this.#end());
    });
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#deadline?.cancel();
    const { nodes } = this.#entry;
    this.#ended({ succeeded: nodes.every(({ id }) => this.#settled.get(id) === true), refused: false });
  }

  #next(): void {
    if (this.#over) return;
    for (const node of this.#entry.nodes) if (!this.#begun.has(node.id) && this.#ready(node)) this.#begin(node);
    if (!this.#over && this.#settled.size === this.#entry.nodes.length) this.#end();
  }

  #ready({ needs = [] }: Node): boolean {
    return needs.every((need) => this.#settled.has(need));
  }

  #begin({ id, tool, needs = [] }: Node): void {
    this.#begun.add(id);
    const settle = (succeeded: boolean): void => {
      this.#settled.set(id, succeeded);
      this.#next();
    };
    // What lacks a value is skipped.
    if (needs.some((need) => this.#settled.get(need) !== true)) return settle(false);
    // What became ready at the deadline itself does not begin.
    if (this.#time.now() < this.#untilMs) this.#calls.call(tool, ({ succeeded }) => settle(succeeded), this.#untilMs);
  }
}
