import type { ScenarioPlanEntry } from '../../../contract/formats/scenario-entry.ts';
import { TURN_TIMEOUT_MS } from '../../../policy/profile.ts';
import type { SimulatedTime, Task } from '../../time.ts';
import type { Ended } from '../engine.ts';

type Node = ScenarioPlanEntry['nodes'][number];

/** Carries out calls until their turn ends. */
interface Calls {
  call(toolName: string, ended: (end: Ended) => void, untilMs: number): Task;
}

/** A turn without the streams around it: nodes begin once their needs have succeeded, and a deadline ends it. */
export class PlanRun {
  readonly #entry: ScenarioPlanEntry;
  readonly #time: SimulatedTime;
  readonly #calls: Calls;
  readonly #ended: (end: Ended) => void;
  readonly #begun = new Set<string>();
  readonly #settled = new Map<string, boolean>();
  readonly #running = new Map<string, Task>();
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
    this.#deadline = this.#time.at(this.#untilMs, Number.MAX_SAFE_INTEGER, () => this.#end());
    this.#next();
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#deadline?.cancel();
    for (const call of this.#running.values()) call.cancel();
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
      this.#running.delete(id);
      this.#next();
    };
    // What lacks a value is skipped.
    if (needs.some((need) => this.#settled.get(need) !== true)) return settle(false);
    const call = this.#calls.call(tool, ({ succeeded }) => settle(succeeded), this.#untilMs);
    if (!this.#settled.has(id)) this.#running.set(id, call);
  }
}
