import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { BreakerOptions } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkNumber, given, integer } from '../policy/check.ts';
import { readAsCall } from '../policy/recovery/classify.ts';
import { STAMP, type Trace } from './trace.ts';
import type { Breaker } from '../operators/breaker/breaker.ts';
import type { ChangeDetail } from '../operators/breaker/change.ts';
import { OpenBreaker, type BreakerKeeper } from '../operators/breaker/open-breaker.ts';

/** Breakers kept at a time; the one used longest ago makes room. */
const BREAKERS_MAX = 10_000;

/** What a person can order breakers to do, until the next order. */
export type BreakerOrder = 'force_open' | 'reset' | 'disable';

/** The breakers of a layer, one per tool and scope. */
export interface Breakers {
  /**
   * Gives the breaker of a tool and scope; the first who asks makes it. Beyond `maxBreakers` the one used longest ago
   * is forgotten.
   *
   * @param toolName the tool's name
   * @param scope what else sets calls apart: a tenant; by default none
   * @param options for a breaker that is made now, by the first who asks; by default those of the registered tool
   */
  get(toolName: string, scope?: string, options?: BreakerOptions): Breaker;
  /**
   * How a breaker stands, for who only looks: it is not made for that, and not kept the longer. Of one that nobody
   * asked for, how it would begin.
   */
  stateOf(toolName: string, scope?: string, options?: BreakerOptions): BreakerStateName;
  /** Those that were asked for so far. */
  list(): readonly BreakerEntry[];
  /** The same, one at a time, while others may come and go. */
  all(): Iterable<BreakerEntry>;
  /**
   * Gives an order to all breakers of these names, in every scope; without names, to all there are. It stands until
   * another one is given: a breaker that is made later, for the first call of another tenant, begins with it.
   * @returns the breakers that exist now and got the order
   */
  order(order: BreakerOrder, names?: readonly string[]): readonly BreakerEntry[];
  /** Whether an order other than `reset` stands for a name. */
  isOrdered(name: string): boolean;
}

/** A breaker of a layer, and what it guards. */
export interface BreakerEntry {
  /** The name it is known by: its tool's, or what `breakerKey` made of it. */
  readonly toolName: string;
  /** The tenant; empty without one. */
  readonly scope: string;
  /** The breaker itself. */
  readonly breaker: Breaker;
}

export interface BreakerListener {
  changed(toolName: string, scope: string, from: BreakerStateName, to: BreakerStateName, detail: ChangeDetail): void;
  reset(toolName: string, scope: string): void;
  evicted(toolName: string, scope: string): void;
}

/** Who makes the breakers of a layer. */
export interface BreakerMaker {
  make(toolName: string, scope: string, options: BreakerOptions | undefined, keeper: BreakerKeeper): Breaker;
  /** Called when a breaker was forgotten to make room for another one. */
  evicted(breaker: Breaker): void;
}

/** Makes breakers that are this process's own. */
const ownBreakers = (runtime: Runtime): BreakerMaker => ({
  make: (_, __, options = {}, keeper) => new OpenBreaker(readAsCall, options, runtime, keeper).breaker,
  evicted: () => undefined,
});

const VERBS = { force_open: 'forceOpen', reset: 'reset', disable: 'disable' } as const;

/** How a breaker begins that an order stands for. */
const BEGINS_AS: Readonly<Partial<Record<BreakerOrder, BreakerStateName>>> = {
  force_open: 'forced_open',
  disable: 'disabled',
};

/** The length keeps two different pairs from giving one key. */
const keyOf = (toolName: string, scope: string): string => `${scope.length}:${scope}${toolName}`;

/** What a person set stays set, unless nothing else is left. */
const SET: ReadonlySet<BreakerStateName> = new Set(['forced_open', 'disabled']);

type UsedEntry = BreakerEntry & { usedAt: number };

/**
 * Gives the entry used longest ago, and one that a person set only where all are. They are put into order once, and
 * taken from that until it is used up: whatever was used since is younger than all that is left of it.
 */
const inOrderOfUse = (
  entries: ReadonlyMap<string, UsedEntry>,
): { next(): UsedEntry | undefined; added(entry: UsedEntry): void; forget(): void } => {
  // The one used longest ago last.
  let order: Array<{ readonly entry: UsedEntry; readonly usedAt: number }> = [];
  let areSet = false;
  const isSet = ({ breaker }: UsedEntry): boolean => SET.has(breaker.state.type);
  const next = (): UsedEntry | undefined => {
    for (let found = order.pop(); found !== undefined; found = order.pop())
      if (found.entry.usedAt === found.usedAt && isSet(found.entry) === areSet) return found.entry;
    const all = [...entries.values()];
    const free = all.filter((entry) => !isSet(entry));
    areSet = free.length === 0;
    order = (areSet ? all : free)
      .map((entry) => ({ entry, usedAt: entry.usedAt }))
      .toSorted((one, other) => other.usedAt - one.usedAt);
    return order.pop()?.entry;
  };
  const forget = (): void => void (order = []);
  return { next, forget, added: (entry) => areSet && !isSet(entry) && forget() };
};

/** A registry that makes each breaker when it is first asked for, with the options of its tool. */
export const createBreakers = (
  optionsOf: (toolName: string) => BreakerOptions | undefined,
  runtime: Runtime,
  listener: BreakerListener,
  max: number = BREAKERS_MAX,
  maker: BreakerMaker = ownBreakers(runtime),
): Breakers => {
  const own = new LayerBreakers(optionsOf, listener, max, maker);
  // A host may take its functions apart.
  return {
    get: (toolName, scope, options) => own.get(toolName, scope, options),
    stateOf: (toolName, scope, options) => own.stateOf(toolName, scope, options),
    list: () => own.list(),
    all: () => own.all(),
    order: (order, names) => own.order(order, names),
    isOrdered: (name) => own.isOrdered(name),
  };
};

class LayerBreakers implements Breakers {
  readonly #optionsOf: (toolName: string) => BreakerOptions | undefined;
  readonly #listener: BreakerListener;
  readonly #max: number;
  readonly #maker: BreakerMaker;
  /**
   * Stamped when used, and not moved to a Map's end: a Map that loses and gains an entry with each call is made anew
   * every few calls.
   */
  readonly #entries = new Map<string, UsedEntry>();
  /** Those of no scope once more, by their tools: most calls find theirs without making a key. */
  readonly #unscoped = new Map<string, UsedEntry>();
  readonly #eldest = inOrderOfUse(this.#entries);
  #uses = 0;
  /** Of names whose order is another one than that of all. */
  readonly #ordered = new Map<string, BreakerOrder>();
  #orderedAll: BreakerOrder = 'reset';

  constructor(
    optionsOf: (toolName: string) => BreakerOptions | undefined,
    listener: BreakerListener,
    max: number,
    maker: BreakerMaker,
  ) {
    checkNumber('maxBreakers', max, integer(1, 1_000_000));
    this.#optionsOf = optionsOf;
    this.#listener = listener;
    this.#max = max;
    this.#maker = maker;
  }

  get(toolName: string, scope: string = '', options: BreakerOptions | undefined = this.#optionsOf(toolName)): Breaker {
    const found = this.#find(toolName, scope);
    if (found === undefined) return this.#make(toolName, scope, options);
    found.usedAt = ++this.#uses;
    return found.breaker;
  }

  stateOf(
    toolName: string,
    scope: string = '',
    options: BreakerOptions | undefined = this.#optionsOf(toolName),
  ): BreakerStateName {
    const begins = BEGINS_AS[this.#standingOf(toolName)] ?? options?.initialState ?? 'closed';
    return this.#find(toolName, scope)?.breaker.state.type ?? begins;
  }

  list(): readonly BreakerEntry[] {
    return [...this.#entries.values()].map(({ toolName, scope, breaker }) => ({ toolName, scope, breaker }));
  }

  all(): Iterable<BreakerEntry> {
    return this.#entries.values();
  }

  order(order: BreakerOrder, names?: readonly string[]): readonly BreakerEntry[] {
    if (names === undefined) {
      this.#ordered.clear();
      this.#orderedAll = order;
    }
    for (const name of names ?? []) {
      if (order === this.#orderedAll) this.#ordered.delete(name);
      else this.#ordered.set(name, order);
    }
    const told = names === undefined ? this.list() : this.list().filter(({ toolName }) => names.includes(toolName));
    for (const { breaker } of told) breaker[VERBS[order]]();
    return told;
  }

  isOrdered(name: string): boolean {
    return this.#standingOf(name) !== 'reset';
  }

  #standingOf(name: string): BreakerOrder {
    return this.#ordered.get(name) ?? this.#orderedAll;
  }

  #find(toolName: string, scope: string): UsedEntry | undefined {
    return scope === '' ? this.#unscoped.get(toolName) : this.#entries.get(keyOf(toolName, scope));
  }

  #make(toolName: string, scope: string, options: BreakerOptions | undefined): Breaker {
    if (this.#entries.size >= this.#max) this.#evictOldest();
    let isNew = true;
    const breaker = this.#maker.make(toolName, scope, options, {
      changed: (from, to, detail) => {
        if (!isNew && (SET.has(from) || SET.has(to))) this.#eldest.forget();
        this.#listener.changed(toolName, scope, from, to, detail);
      },
      reset: () => this.#listener.reset(toolName, scope),
    });
    const entry = { breaker, toolName, scope, usedAt: ++this.#uses };
    this.#entries.set(keyOf(toolName, scope), entry);
    if (scope === '') this.#unscoped.set(toolName, entry);
    const standing = this.#standingOf(toolName);
    if (standing !== 'reset') breaker[VERBS[standing]]();
    isNew = false;
    this.#eldest.added(entry);
    return breaker;
  }

  #evictOldest(): void {
    const evicted = this.#eldest.next();
    if (evicted === undefined) return;
    const { toolName, scope, breaker } = evicted;
    this.#entries.delete(keyOf(toolName, scope));
    if (scope === '') this.#unscoped.delete(toolName);
    this.#maker.evicted(breaker);
    this.#listener.evicted(toolName, scope);
  }
}

/** Tells the trace of what becomes of breakers. */
export const breakerListener = (trace: Trace): BreakerListener => ({
  changed: (toolName, scope, from, to, { untilMs, by, ordered }) => {
    if (!trace.observed) return;
    const why = given({ untilMs, callId: by, ordered }) as { readonly untilMs?: number };
    trace.publish({
      ...STAMP,
      source: 'layer',
      type: 'breaker_changed',
      toolName,
      scope,
      from,
      to,
      message: breakerMessage(toolName, to),
      ...why,
    });
  },
  reset: (toolName, scope) => {
    if (trace.observed) trace.publish({ ...STAMP, source: 'layer', type: 'breaker_reset', toolName, scope });
  },
  evicted: (toolName, scope) => {
    if (trace.observed) trace.publish({ ...STAMP, source: 'layer', type: 'breaker_evicted', toolName, scope });
  },
});

const breakerMessage = (toolName: string, to: string): string => {
  if (to === 'open') return `Circuit breaker opened for ${toolName}`;
  return `Circuit breaker ${to === 'half_open' ? 'half-open' : to.replace('_', ' ')} for ${toolName}`;
};
