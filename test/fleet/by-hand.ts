import { Subject, type Observable } from 'rxjs';
import { createSpillway, type AnyTool, type Spillway } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import type { TraceEvent } from '../../src/contract/event.ts';
import type { FleetEngine } from '../../src/contract/fleet/port.ts';
import type { DedupeStore } from '../../src/contract/store.ts';
import type { TurnResult } from '../../src/contract/turn.ts';
import type { Dispatcher, Given, RunEnd } from '../../src/fleet/dispatcher.ts';
import { LedgerFleet } from '../../src/fleet/engine.ts';
import { Dice } from '../simulation/dice.ts';
import { LedgerModel } from '../simulation/fleet/ledger.ts';
import { Machine } from '../simulation/fleet/machine.ts';

/** A worker on a machine of its own, which the test gives turns to. */
export interface HandWorker {
  readonly machine: Machine;
  readonly fleet: FleetEngine;
  readonly lost$: Subject<unknown>;
  /** What became of a turn here, as it comes. */
  give(turnId: string): Promise<RunEnd[]>;
}

/** Options of the worker's layer, or a layer of the test's own. */
type HandOptions = Parameters<typeof createSpillway>[0] & { readonly layer?: Spillway };

/** What a fleet shares, as models in virtual time; the test is its engine. */
export interface HandFleet {
  readonly runtime: VirtualRuntime;
  readonly ledger: LedgerModel;
  readonly fleet: FleetEngine;
  worker(name: string, tools: readonly AnyTool[], options?: HandOptions): HandWorker;
  /** The result of a turn that has settled. */
  result(turnId: string): TurnResult | undefined;
}

const METHODS = ['enter', 'begin', 'write', 'owns', 'yields', 'read', 'cancel', 'beat', 'leave'] as const;
const ASKED = ['get', 'setIfNotExists', 'compareAndSet', 'renew', 'delete'] as const;

/** A store that says of itself that all workers can share it. */
export const sharedStore = (runtime: VirtualRuntime): DedupeStore => {
  const store = memoryStore({ runtime, sweepMs: Infinity });
  return Object.assign(Object.create(store) as typeof store, {
    report: () => ({ kind: 'model', durability: 'disk' as const, shared: true, warnings: [] }),
  });
};

export function handFleet(
  runtime: VirtualRuntime = virtualRuntime(),
  store: DedupeStore = sharedStore(runtime),
): HandFleet {
  const ledger = new LedgerModel(() => runtime.now());
  const idle: Dispatcher = {
    engine: 'by hand',
    add: async () => undefined,
    work: () => ({ ready: Promise.resolve(), pause: async () => undefined, close: async () => undefined }),
    close: async () => undefined,
  };
  const engineOf = (dispatcher: Dispatcher, machine?: Machine): FleetEngine =>
    new LedgerFleet({
      ledger: machine === undefined ? ledger : machine.over(ledger, METHODS),
      dispatcher,
      runtime: machine?.runtime ?? runtime,
      maxOpen: 100,
      answerTimeoutMs: 1_000,
    });
  const result = (turnId: string): TurnResult | undefined => {
    const last = ledger.turns.get(turnId)?.events.at(-1);
    const event = last === undefined ? undefined : (JSON.parse(last) as TraceEvent);
    return event?.source === 'turn' && event.type === 'settled' ? event.result : undefined;
  };
  return {
    runtime,
    ledger,
    result,
    fleet: engineOf(idle),
    worker: (name, tools, { layer: given, ...options } = {}) => {
      const machine = new Machine(name, runtime, new Dice(name.length, 7));
      let run: ((given: Given) => Observable<RunEnd>) | undefined;
      const dispatcher: Dispatcher = {
        ...idle,
        work: (given) => {
          run = given;
          return { ready: Promise.resolve(), pause: async () => undefined, close: async () => undefined };
        },
      };
      const fleet = engineOf(dispatcher, machine);
      const layer =
        given ?? createSpillway({ tools, store: machine.over(store, ASKED), runtime: machine.runtime, ...options });
      fleet.serve({ layer, worker: name });
      const lost$ = new Subject<unknown>();
      const give = async (turnId: string): Promise<RunEnd[]> => {
        const ends: RunEnd[] = [];
        await runtime.advance(1);
        run?.({ turnId, lost$ }).subscribe((end) => ends.push(end));
        await runtime.advance(50);
        return ends;
      };
      return { machine, fleet, lost$, give };
    },
  };
}
