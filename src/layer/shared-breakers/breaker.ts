import { EMPTY, Subscription, finalize, switchMap } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Admission } from '../../operators/breaker/permit.ts';
import { rejectionHintMs } from '../../policy/breaker/hint.ts';
import { advanceBreaker, decideBreaker, reduceBreaker } from '../../policy/breaker/reducer.ts';
import type { BreakerInput, BreakerMemory, BreakerOutcome, Permit } from '../../policy/breaker/reducer.ts';
import type { BreakerReplica, Seen } from './replica.ts';
import type { BreakerStore } from './store.ts';
import { ProbePermit, WatchedPermit, type Probe } from './permit.ts';

/** How often a change is tried again that somebody else's was faster than: each time another process got on. */
const TRIES = 16;
/** A rejection takes under 10 ms: where our own breaker is open, the store is waited for this long. */
const REJECTION_MS = 5;

/** Who asks for admission. */
interface Asker {
  readonly over: boolean;
  readonly by: string | undefined;
  answer(admission: Admission): void;
}

/** Of a probe: the record that admitted it, and whose it is. */
type Teller = Pick<Probe, 'origin' | 'by'>;
type ProbeInput = Extract<BreakerInput, { type: 'outcome' | 'progress' }>;

/**
 * Admission by all processes that share a breaker. A probe, and what became of it, is a step of the reducer
 * that each process has, from one version of the record to the next; whoever was slower looks again. Where the store is
 * lost, our own breaker decides.
 */
export class SharedBreaker {
  readonly #replica: BreakerReplica;
  readonly #store: BreakerStore;
  readonly #runtime: Runtime;
  #isMoving = false;
  readonly #waiting: Array<(done: () => void) => void> = [];

  constructor(replica: BreakerReplica, store: BreakerStore, runtime: Runtime) {
    this.#replica = replica;
    this.#store = store;
    this.#runtime = runtime;
  }

  /** Asks for admission, by all processes while the store answers. */
  admit(told: (admission: Admission) => void, by?: string): Subscription {
    const asking = new Subscription();
    if (this.#store.isLost || this.#replica.isSet || this.#replica.isPublishing) {
      // One process must not admit probes while it is still telling the others that the breaker opened.
      const { here, isPublishing } = this.#replica;
      told(isPublishing && here.type === 'half_open' ? this.#reject(here) : this.#admitHere(by));
      return asking;
    }
    let over = false;
    const asker: Asker = {
      by,
      get over() {
        return over;
      },
      answer: (admission) => {
        if (over) return void (admission.admitted && admission.release());
        over = true;
        told(admission);
      },
    };
    asking.add(this.#attempt(asker, TRIES));
    if (over || this.#replica.here.type !== 'open') return asking;
    asking.add(this.#runtime.after(REJECTION_MS).subscribe(() => this.#outOfPatience(asker)));
    return asking;
  }

  /** Takes the end of a call that our own breaker admitted. */
  heardOutcome(): void {
    if (this.#replica.here.type === 'open' && this.#replica.strayed) this.#replica.publish();
  }

  probeEnded({ origin, permit, startedAtMs, by }: Probe, outcome: BreakerOutcome, error: unknown, atMs?: number): void {
    this.#tell({ origin, by }, this.#replica.own.outcomeOf(permit, startedAtMs, outcome, error, atMs), TRIES);
  }

  /**
   * A probe gave a value. Told a few times before half-open's deadline: a write for each value would cost more than the
   * probe.
   */
  probeProgressed(probe: Probe): void {
    const atMs = this.#runtime.now();
    if (atMs - probe.toldAtMs < this.#replica.own.settings.halfOpenTimeoutMs / 4) return;
    probe.toldAtMs = atMs;
    this.#tell(probe, { type: 'progress', atMs, permit: probe.permit }, TRIES);
  }

  #admitHere(by: string | undefined): Admission {
    const admission = this.#replica.own.breaker.admit(undefined, by);
    return admission.admitted ? new WatchedPermit(admission, this) : admission;
  }

  #reject(memory: BreakerMemory): Admission {
    return { admitted: false, retryAfterMs: rejectionHintMs(memory, this.#replica.own.settings, this.#runtime.now()) };
  }

  #outOfPatience(asker: Asker): void {
    // Half-open by now, it is the store's to say who probes.
    if (this.#replica.here.type === 'open') asker.answer(this.#reject(this.#replica.here));
  }

  #attempt(asker: Asker, tries: number): Subscription {
    return this.#replica.look().subscribe({
      next: (agreed) => this.#decide(asker, agreed, tries),
      error: () => asker.answer(this.#admitHere(asker.by)),
    });
  }

  #decide(asker: Asker, agreed: boolean, tries: number): void {
    const { own } = this.#replica;
    const atMs = this.#runtime.now();
    // Publishes what time alone has changed.
    if (this.#replica.here !== own.memory) own.tell({ type: 'tick', atMs }, asker.by);
    const { type } = own.memory;
    const asksOn = type === 'half_open' && !asker.over;
    if (!agreed) this.#replica.publish(asksOn ? () => this.#askOnceTold(asker, tries) : undefined);
    if (asker.over || (!agreed && type === 'half_open')) return;
    if (type !== 'half_open' || this.#replica.seen === undefined) return asker.answer(this.#admitHere(asker.by));
    this.#inTurn((done) => this.#decideInTurn(asker, tries, done));
  }

  #decideInTurn(asker: Asker, tries: number, done: () => void): void {
    const { own, seen } = this.#replica;
    const atMs = this.#runtime.now();
    // While it waited for its turn it may have closed, opened anew, or been lost with the store.
    const { here } = this.#replica;
    if (asker.over || seen === undefined || here.type !== 'half_open' || this.#store.isLost) {
      done();
      if (!asker.over)
        asker.answer(this.#store.isLost && here.type === 'half_open' ? this.#reject(here) : this.#admitHere(asker.by));
      return;
    }
    const [next, permit] = decideBreaker(seen.memory, { type: 'admit', atMs }, own.settings);
    if (permit === undefined) {
      done();
      return asker.answer(this.#reject(seen.memory));
    }
    this.#claim(
      asker,
      seen,
      next,
      { origin: seen.origin, permit, startedAtMs: atMs, by: asker.by, toldAtMs: atMs },
      tries,
      done,
    );
  }

  /**
   * Moves of the record, one at a time. One that began on what another shows already, and the store does not know yet,
   * would tell of the other's probe as well; told again by itself, its end would be counted twice, and one probe too
   * many admitted.
   */
  #inTurn(move: (done: () => void) => void): void {
    if (this.#isMoving) return void this.#waiting.push(move);
    this.#isMoving = true;
    let isDone = false;
    move(() => {
      if (isDone) return;
      isDone = true;
      this.#isMoving = false;
      const next = this.#waiting.shift();
      if (next !== undefined) this.#inTurn(next);
    });
  }

  /** Takes a place as a probe. Whoever gets no answer is refused: the place may be theirs or not. */
  #claim(asker: Asker, seen: Seen, next: BreakerMemory, probe: Probe, tries: number, done: () => void): void {
    const giveBack = (): void => this.probeEnded(probe, 'ignored', undefined);
    // Not called off by an asker who leaves: the place would stay taken.
    this.#replica
      .put(seen, next, giveBack)
      .pipe(finalize(done))
      .subscribe({
        next: (isTaken) => {
          // The probe may end at once; its end waits its own turn.
          done();
          if (isTaken) asker.answer(new ProbePermit(probe, this));
          else this.#askAgain(asker, tries);
        },
        error: () => asker.answer(this.#reject(next)),
      });
  }

  #askAgain(asker: Asker, tries: number): void {
    if (tries > 0 && !this.#store.isLost) this.#attempt(asker, tries - 1);
    else asker.answer(this.#reject(this.#replica.here));
  }

  /** Half-open is what only we are in, as yet: where nobody can be told, our own breaker admits its probes. */
  #askOnceTold(asker: Asker, tries: number): void {
    if (this.#store.isLost) asker.answer(this.#admitHere(asker.by));
    else this.#askAgain(asker, tries);
  }

  /**
   * Tells all of a probe: by the record as it was last seen, and again by what it has become where somebody was faster.
   */
  #tell(probe: Teller, told: ProbeInput, tries: number): void {
    this.#inTurn((done) => {
      if (!this.#tellInTurn(probe, told, tries, done)) done();
    });
  }

  /** Whether something was asked of the store, after whose answer it is done. */
  #tellInTurn(probe: Teller, told: ProbeInput, tries: number, done: () => void): boolean {
    const seen = this.#replica.seen;
    // Closed since, or opened anew: the probe is of an older generation.
    if (seen?.origin !== probe.origin) return false;
    if (this.#store.isLost) {
      this.#tellHere(seen, told, probe.by);
      return false;
    }
    const { settings } = this.#replica.own;
    const now = advanceBreaker(seen.memory, settings, told.atMs);
    const next = reduceBreaker(now, told, settings);
    if (next === now) return false;
    // Ours shows it at once: whether to try again is decided by it.
    this.#replica.adopt({ ...seen, memory: next }, probe.by);
    this.#replica
      .put(seen, next)
      .pipe(
        switchMap((isPut) => (isPut || tries === 0 ? EMPTY : this.#replica.look())),
        finalize(done),
      )
      // Where the store is lost, our own breaker has counted the outcome all the same.
      .subscribe({ next: () => this.#tell(probe, told, tries - 1), error: () => undefined });
    return true;
  }

  /** Counts the probe in our own breaker, since the store is lost. */
  #tellHere({ generationsAhead, epochsAhead }: Seen, told: ProbeInput, by: string | undefined): void {
    const { generation, probeEpoch = 0 } = told.permit;
    const permit: Permit = { generation: generation + generationsAhead, probeEpoch: probeEpoch + epochsAhead };
    this.#replica.own.tell({ ...told, permit }, by);
  }
}
