import type { BreakerStateName } from '../../contract/breaker-state.ts';
import { Breathing } from '../../operators/breath.ts';
import { OTHER_TOOL } from '../sink.ts';
import type { ListedBreaker, MeteredTool } from './tool-meters.ts';

/** Breakers that are not as they began, at a time and beyond what anyone looks at. */
const SCOPES_MAX = 10_000;
/** How bad a state is: a tool is in the worst state of its breakers. */
const RANK: Readonly<Record<BreakerStateName, number>> = {
  closed: 0,
  disabled: 1,
  half_open: 2,
  open: 3,
  forced_open: 4,
};

const worse = (a: BreakerStateName | undefined, b: BreakerStateName): BreakerStateName =>
  a === undefined || RANK[b] > RANK[a] ? b : a;

/** A breaker, of those that count as one tool's. */
interface ScopedBreaker {
  /** Its own name. */
  readonly toolName: string;
  readonly scope: string;
}

/** Tools that are not listed count as one, and have breakers of their own all the same. */
const keyOf = ({ toolName, scope }: ScopedBreaker): string => `${toolName.length} ${toolName}${scope}`;

/** The states of breakers: a tool has one for each tenant. */
export class BreakerWatch {
  readonly #tools: ReadonlyMap<string, MeteredTool>;
  /** Those that are not as they began, as far as events tell. */
  readonly #changed = new Map<string, Map<string, BreakerStateName>>();
  #kept = 0;

  constructor(tools: ReadonlyMap<string, MeteredTool>) {
    this.#tools = tools;
  }

  set(toolName: string, breaker: ScopedBreaker, state: BreakerStateName): void {
    const key = keyOf(breaker);
    const scopes = this.#changed.get(toolName) ?? new Map<string, BreakerStateName>();
    if (scopes.delete(key)) this.#kept--;
    if (state !== this.initial(toolName) && this.#kept < SCOPES_MAX) {
      scopes.set(key, state);
      this.#kept++;
    }
    if (scopes.size > 0) this.#changed.set(toolName, scopes);
    else this.#changed.delete(toolName);
  }

  forget(toolName: string, breaker: ScopedBreaker): void {
    this.set(toolName, breaker, this.initial(toolName));
  }

  /** What a tool's breaker begins as. */
  initial(toolName: string): BreakerStateName {
    const breaker = this.#tools.get(toolName)?.policy?.breaker;
    return breaker === false ? 'disabled' : (breaker?.initialState ?? 'closed');
  }

  /**
   * The worst state of each tool that has one other than its first; of the rest, `initial`. Each breaker is looked at
   * once, and the event loop gets its turn in between.
   *
   * @param listed how the breakers stand now, where that is known: of one whose cooldown passes without traffic no
   * event tells
   */
  async states(listed: readonly ListedBreaker[] | undefined): Promise<ReadonlyMap<string, BreakerStateName>> {
    const states = new Map<string, BreakerStateName>();
    const breathing = new Breathing();
    for (const [toolName, state] of listed === undefined ? this.#told() : this.#named(listed)) {
      states.set(toolName, worse(states.get(toolName), state));
      if (breathing.isDue) await breathing.breath();
    }
    return states;
  }

  *#told(): Generator<readonly [string, BreakerStateName]> {
    for (const [toolName, scopes] of this.#changed) for (const state of scopes.values()) yield [toolName, state];
  }

  *#named(listed: readonly ListedBreaker[]): Generator<readonly [string, BreakerStateName]> {
    for (const { toolName, state } of listed) yield [this.#tools.has(toolName) ? toolName : OTHER_TOOL, state.type];
  }
}
