/**
 * What is simulated: calls and turns over their breakers, calls under keys over their store, and, each in a small world
 * of its own, a host's guidance and what a layer learns, its switches, hedges, breakers of several processes, and turns
 * that undo what they did.
 */
export type ScenarioName =
  | 'layer'
  | 'idempotency'
  | 'recovery'
  | 'switches'
  | 'hedge'
  | 'breakers'
  | 'fleet'
  | 'settle';

/** One seed in so many is about keys. */
const KEYS_EVERY = 4;

/** One seed in so many is about each of the small worlds. */
const SIDE_EVERY = 16;
const SIDES: Readonly<Record<number, ScenarioName>> = {
  1: 'recovery',
  5: 'switches',
  9: 'hedge',
  13: 'breakers',
  3: 'fleet',
  15: 'settle',
};

/** The scenario of a seed, where nobody names one. */
export const scenarioOf = (seed: number): ScenarioName =>
  seed % KEYS_EVERY === 0 ? 'idempotency' : (SIDES[seed % SIDE_EVERY] ?? 'layer');

/**
 * Every so many seeds run twice, to see that they give the same trace: no multiple of `KEYS_EVERY`, which would leave
 * one scenario out.
 */
const TWICE_EVERY = 101;
export const runsTwice = (seed: number): boolean => seed % TWICE_EVERY === 0;

/** Rare states. One that is never reached over a whole batch means that the batch proves less than it seems to. */
export const SOMETIMES = {
  layer: [
    'deadline in a backoff',
    'an old probe alive at the next half-open',
    'breaker opens while another call backs off',
    'unsubscribed inside next',
    'synchronous throw',
    'empty turn',
    'two answers at one instant, in order',
    'two answers at one instant, out of order',
    'late answer after a timeout',
    'success on a retry',
    'alternative answers',
    'detached call settles late',
    'half-open rejects',
    'half-open revokes its probes',
    'breaker closes again',
    'ramp rejects',
    'slow call opens a breaker',
    'stall past several timers',
    'wall clock jumps in a call',
    'Retry-After is the wait',
    'uncertain mutation refused',
    'retry budget refuses',
    'node skipped',
    'node ran with a default',
    'required node skipped',
    'ready node waits for a place',
    'closed while running',
    'answer and deadline at one instant',
    'idle timeout',
    'signal aborted in an attempt',
    'decision comes later',
    'old generation ends',
    'several probes at once',
    'permanent answer in half-open',
    'a hook changes a call',
    'a hook blocks a call',
    'a hook blocks an attempt',
    'a hook fails',
    'a hook never answers',
    'a hook answers later',
    'an input does not fit',
    'an output does not fit',
    'the error handler gives up',
    'the error handler orders something else',
    'the error handler is overruled by a rule',
  ],
  idempotency: [
    'deadline in a claim',
    'lease lost in an attempt',
    'completion reply lost',
    'follower waits and leader dies',
    'takeover',
    'stale writer refused',
    'conflict',
    'cancelled in flight',
    'failover forgot a claim',
    'store down at claim',
    'replay of a failure',
    'all calls on one key',
    'replay of a result',
    'stall longer than the lease',
    'runs unprotected',
    'late claim given back',
    'leader goes on for others',
    'overtaken call gets the other’s result',
    'success that is not recorded',
    'resource refuses a stale fence',
    'detached call is recorded',
    'never twice',
    'forgotten at its time',
    'several effects under one key, and told so',
    'busy',
    'breaker refuses a call that holds its key',
    'budget refuses a retry under a key',
    'alternative under a key',
    'alternative is replayed',
    'call that needed another, under a key',
  ],
  recovery: [
    'a rule changes a decision',
    'a rule forces a strategy',
    'rules forbid every way',
    'experience changes a decision',
    'experience passes an alternative over',
    'evidence is too old, or mixed',
    'a retry against the evidence',
  ],
  switches: [
    'straight through',
    'in shadow',
    'a switch is thrown while calls run',
    'shadow would time out',
    'shadow would retry',
    'shadow would reject',
    'shadow would replay',
    'an open breaker only observes',
    'a breaker refuses',
    'a misfit goes straight through',
  ],
  hedge: [
    'a hedge is made',
    'a hedge wins',
    'the first wins over its hedge',
    'an attempt drops out of the race',
    'all attempts fail',
    'the budget forbids a hedge',
    'a measured wait',
    'too few are measured',
    'unsubscribed while two run',
  ],
  breakers: [
    'one opens for all',
    'probes by another process',
    'a probe is refused by the others',
    'all close',
    'the store is lost',
    'a local rejection while the store is lost',
    'two probes at once',
    'an old probe ends late',
    'a store that is slow',
  ],
  fleet: [
    'a worker of a fleet is killed',
    'a worker of a fleet stands still',
    'a fleet loses its engine',
    'a turn moves',
    'a turn of a fleet is harvested at its deadline',
  ],
  settle: [
    'an effect is found',
    'it is found that there is no effect',
    'it cannot be found out',
    'a turn completes',
    'a turn is undone',
    'something stays',
    'the deadline passes',
    'a turn is canceled',
    'a process dies in its turn',
    'a process dies while it undoes',
    'an end is told by another process',
  ],
} as const;
export type Sometimes = (typeof SOMETIMES)[ScenarioName][number];

/** What must hold at every step, once quiet, or after the faults have stopped. */
export const INVARIANTS = {
  'RES-1': 'a call emits at most one result',
  'RES-2': 'every call and turn that was not given up has exactly one result',
  'RES-3': 'a result is what really happened: the attempt’s own value, a failure for a failure',
  'TURN-1': 'a turn settles at its deadline at the latest',
  'TURN-2': 'the harvest holds every result that was good before the deadline',
  'RET-1': 'no more attempts at a tool than the policy allows',
  'RET-2': 'attempts of a call do not overlap; a wait lies in the policy’s interval and respects Retry-After',
  'RET-3': 'what is permanent is not tried again',
  'RET-4': 'the retries of a window stay within the budget that all calls share',
  'RET-5': 'a mutation that may have taken effect is not done again',
  'RET-6': 'the host’s error handler can refuse more than the rules do, and what it refuses is not done',
  'DL-1': 'nothing starts at or after a deadline, and no wait begins that ends after it',
  'TO-1': 'an attempt ends by its timeout, and not before if its answer was there',
  'BRK-1': 'half-open runs at most so many probes, those of earlier half-open periods included',
  'BRK-2': 'nothing starts while open, nothing is rejected while closed',
  'BRK-3': 'a state changes by an outcome of the current generation or by time alone',
  'BRK-4': 'a permit is given back exactly once',
  'BRK-5': 'with a healthy tool a breaker closes after its cooldown and N + 1 calls',
  'BRK-6': 'recorded inputs, replayed, give the same states',
  'DAG-1': 'a node starts once, after all its needs have settled with a value or a default',
  'DAG-2': 'a node is skipped exactly when a need has no value and nothing stands in for it',
  'DAG-3': 'the concurrency limit holds, and no ready node waits while a place is free',
  'IDEM-1': 'two attempts of one key with valid leases never run at once',
  'IDEM-2': 'no attempt starts without a lease that is valid by its holder’s clock, less a margin',
  'IDEM-3': 'who no longer holds a key cannot write, and the fences of a key only grow',
  'IDEM-4': 'after an acknowledged completion every later claim within its time gets that value, byte for byte',
  'IDEM-5':
    'one effect under a key, unless a call told of uncertainty, of a lost lease, or of a success that was not recorded',
  'IDEM-6': 'the store’s history, lost answers left open, is linearizable for each key',
  'IDEM-7': 'the same key with another input is a conflict, and only that is',
  'IDEM-8': 'no value crosses scopes or tenants',
  'RSC-1': 'what is given up is over in the same instant: signals aborted, no timer, listener or event left',
  'TRC-1':
    'every attempt has one start and one end, nothing of a call follows its result, numbers grow without gaps and time does not go back',
  'TRC-2': 'results, worked out from the trace, equal those given',
  'TRC-3': 'what a subscriber lost is counted',
  'DET-1': 'the same seed gives the same trace',
  'ERR-1': 'no public stream errors, nothing is thrown out of subscribe, no rejection is left unhandled',
  'FB-1':
    'an alternative runs only after the final failure of what it stands in for, before the deadline, and the result names it',
  'HOOK-1':
    'the hooks are asked once about each call and attempt, before it; what they block does not run, what they change is what runs, and they hear how it ended',
  'SCH-1':
    'a tool gets what its schema gives; what does not fit does not run, and an answer that does not fit is a failure that may have had effects',
  'SET-1': 'nothing is done twice under one key',
  'SET-2': 'what is told as done is there, and what is told as not done, or undone, is not',
  'SET-3': 'a turn that did not complete leaves nothing that is not told as staying',
  'SET-4': 'a turn that was told as completed is not undone, and nothing is left for a third process',
  'SET-5': 'every turn settles, here or by the process that goes on with it',
  'GUI-1':
    'what a host’s rules forbid is not done, what they force is, and what is done for a rule’s sake has a rule that applies',
  'EXP-1': 'what never helped is not tried again, and nothing else is left out for want of success',
  'SWI-1':
    'a call that goes straight through, or in shadow, is the tool’s own: run once, at once, with its own input, to its own end',
  'SWI-2': 'shadow tells what the layer would have done, and straight through tells nothing of it',
  'SWI-3': 'an observing breaker refuses nothing, and one that is not refuses while it is open',
  'HDG-1': 'no more attempts than allowed, and none that runs on when another has won, or nobody listens',
  'HDG-2':
    'a hedge starts when its wait is over, not before and not without, and the wait is the one that was measured',
  'HDG-3': 'hedges stay within the budget',
  'HDG-4': 'what is given is the first answer, and an error only when every attempt has failed',
  'SHB-1': 'all processes together run at most so many probes',
  'SHB-2': 'what one process has opened, and the store acknowledged, is open for all until its cooldown is over',
  'SHB-3': 'without faults all close again, and show the same',
  'SHB-4': 'a rejection is told within ten milliseconds where the store is known to be lost',
  'FLT-1': 'a turn that was taken settles exactly once, with each of its nodes',
  'FLT-2': 'an effect happens once, and a node is not run again once the journal has it',
  'FLT-3': 'whoever attaches sees every event once, in order',
  'FLT-4': 'no node fails because a machine did',
  'CLS-1': 'a failure has the class that its structure says',
} as const;
export type InvariantId = keyof typeof INVARIANTS;

export interface Violation {
  readonly invariant: InvariantId;
  readonly message: string;
  readonly atMs: number;
}

/** What the watchers of a run report to. */
export class Findings {
  readonly violations: Violation[] = [];
  readonly seen: Set<Sometimes> = new Set();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  saw(what: Sometimes): void {
    this.seen.add(what);
  }

  /** Reports unless it holds. The message is made only when it does not. */
  check(holds: boolean, invariant: InvariantId, message: () => string): void {
    // The first few say what went wrong; what follows from them says nothing.
    if (!holds && this.violations.length < 5)
      this.violations.push({ invariant, message: message(), atMs: this.#now() });
  }
}
