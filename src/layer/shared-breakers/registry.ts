import { firstValueFrom, from, ignoreElements, mergeMap, type Subscription } from 'rxjs';
import type { BreakerOptions } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { Breaker } from '../../operators/breaker/breaker.ts';
import { OpenBreaker, type BreakerKeeper } from '../../operators/breaker/open-breaker.ts';
import type { Admission } from '../../operators/breaker/permit.ts';
import { ask } from '../../operators/dedupe/ask.ts';
import { readAsCall } from '../../policy/recovery/classify.ts';
import { BreakerReplica } from './replica.ts';
import { BreakerStore } from './store.ts';
import type { BreakerMaker } from '../breakers.ts';
import type { DedupeLayer } from '../idempotency.ts';
import { listed } from '../listing.ts';
import { SharedBreaker } from './breaker.ts';

/** Questions to the store at a time, when all breakers are asked about. */
const REFRESHED_AT_A_TIME = 64;

interface Entry {
  readonly replica: BreakerReplica;
  readonly shared: SharedBreaker;
}

/** The breakers of a layer that are one with those of all processes of its store. */
export class SharedBreakers implements BreakerMaker {
  readonly #dedupe: DedupeLayer;
  readonly #runtime: Runtime;
  readonly #store: BreakerStore;
  readonly #breakers = new Map<Breaker, Entry>();

  constructor(dedupe: DedupeLayer, runtime: Runtime) {
    this.#dedupe = dedupe;
    this.#runtime = runtime;
    this.#store = new BreakerStore(dedupe, runtime);
  }

  make(name: string, scope: string, options: BreakerOptions = {}, keeper: BreakerKeeper): Breaker {
    const own = new OpenBreaker(readAsCall, options, this.#runtime, { ...keeper, watched: () => replica.watched() });
    const replica = new BreakerReplica(own, { name, key: keyOf(name, scope) }, this.#store, this.#runtime);
    this.#breakers.set(own.breaker, { replica, shared: new SharedBreaker(replica, this.#store, this.#runtime) });
    return own.breaker;
  }

  evicted(breaker: Breaker): void {
    this.#breakers.get(breaker)?.replica.close();
    this.#breakers.delete(breaker);
  }

  /** Asks for admission by all processes. */
  admit(breaker: Breaker, told: (admission: Admission) => void, by?: string): Subscription | undefined {
    const entry = this.#breakers.get(breaker);
    if (entry !== undefined) return entry.shared.admit(told, by);
    // It made room for another one while its call went on: it is nobody's but the call's.
    told(breaker.admit(undefined, by));
    return undefined;
  }

  /** Asks the store how all breakers stand, so that they show it. A store that is lost leaves them as they are. */
  async refresh(): Promise<void> {
    const asked$ = from([...this.#breakers.values()]).pipe(
      mergeMap(({ replica }) => replica.refresh(), REFRESHED_AT_A_TIME),
      ignoreElements(),
    );
    await firstValueFrom(asked$, { defaultValue: undefined });
  }

  /**
   * Closes the breakers of these names for all processes, in every scope: each finds so at its next call.
   * @throws ToolExecutionError `store_unavailable`
   */
  async forget(names: readonly string[]): Promise<void> {
    const { storeTimeoutMs } = this.#dedupe;
    for (const name of names) {
      for await (const { key } of listed((store) => store.byTool(`breaker:${name}`), this.#dedupe, this.#runtime)) {
        await firstValueFrom(ask(() => this.#dedupe.store().delete(key), storeTimeoutMs, this.#runtime));
      }
    }
  }

  close(): void {
    this.#store.close();
    for (const { replica } of this.#breakers.values()) replica.close();
  }
}

/** Apart from the keys of calls, which begin with their version. The length keeps two pairs from giving one key. */
const keyOf = (name: string, scope: string): string => `breaker:${scope.length}:${scope}${name}`;
