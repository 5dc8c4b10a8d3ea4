import {
  AsyncSubject,
  EMPTY,
  Subject,
  catchError,
  defer,
  exhaustMap,
  filter,
  map,
  merge,
  repeat,
  startWith,
  switchMap,
  tap,
  type Observable,
} from 'rxjs';
import type { TurnStanding } from '../../contract/fleet/journal.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { HeldTurn, TurnLedger } from '../ledger.ts';
import { untilAnswered } from '../until-answered.ts';

/** Between two signs of life, which say also what is still one's own. */
export const BEAT_MS = 1_000;
/** For how long the ledger's word that a turn is one's own is good, by the clock of who asked, from when it asked. */
const HELD_MS = 2_000;
/** From so long after that word on nobody does anything by it: clocks run apart, and a timer can be late. */
export const FREE_MS = 3_000;

/** A turn that this worker was given, as far as it knows whether that still is so. */
export class Hold {
  readonly turnId: string;
  readonly epoch: number;
  readonly undoes: boolean;
  readonly #ledger: TurnLedger;
  readonly #runtime: Runtime;
  readonly #changed$ = new Subject<unknown>();
  readonly #cancelled$ = new AsyncSubject<true>();
  /** Emits when the turn is to be cancelled. */
  readonly cancelled$: Observable<unknown> = this.#cancelled$.asObservable();
  #confirmedMs: number;
  #isTaken = false;
  /** It goes on elsewhere: the worker's own signs of life no longer ask for it. */
  #isLeft = false;

  constructor(
    ledger: TurnLedger,
    runtime: Runtime,
    { turnId, epoch, undoes, askedMs }: HeldTurn & { readonly askedMs: number },
  ) {
    this.#ledger = ledger;
    this.#runtime = runtime;
    this.turnId = turnId;
    this.epoch = epoch;
    this.undoes = undoes;
    this.#confirmedMs = askedMs;
  }

  /** The ledger said that it is this worker's. @param askedMs when it was asked */
  confirm(askedMs: number): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, askedMs);
    this.#changed$.next(0);
  }

  /** The ledger said that another has it. */
  take(): void {
    this.#isTaken = true;
    this.#changed$.next(0);
  }

  cancel(): void {
    this.#cancelled$.next(true);
    this.#cancelled$.complete();
  }

  leave(): void {
    this.#isLeft = true;
  }

  get standing(): TurnStanding {
    if (this.#isTaken) return 'taken';
    return this.#runtime.now() < this.#confirmedMs + HELD_MS ? 'held' : 'silent';
  }

  /** How it stands, now and whenever that was asked for or has become unknown. */
  get standing$(): Observable<TurnStanding> {
    const timers = this.#runtime.background ?? this.#runtime;
    const silence$ = this.#changed$.pipe(
      startWith(0),
      switchMap(() => timers.after(Math.max(0, this.#confirmedMs + HELD_MS - this.#runtime.now()))),
    );
    const looks$ = timers.after(BEAT_MS).pipe(
      repeat(),
      startWith(0),
      filter(() => this.#isLeft && !this.#isTaken),
      exhaustMap(() => defer(() => this.#ask()).pipe(catchError(() => EMPTY))),
      filter(() => false),
    );
    return merge(this.#changed$, silence$, looks$).pipe(
      startWith(0),
      map(() => this.standing),
    );
  }

  /** Whether it certainly is this worker's, once that is known. */
  owned(): Observable<boolean> {
    return untilAnswered(() => this.#ask(), this.#runtime);
  }

  async #ask(): Promise<boolean> {
    const askedMs = this.#runtime.now();
    const isOwned = await this.#ledger.owns(this.turnId, this.epoch);
    if (isOwned) this.confirm(askedMs);
    else this.take();
    // It may have been given to another since.
    if (this.standing === 'silent') throw new ToolExecutionError('store_unavailable', 'The answer came too late');
    return isOwned;
  }
}

/** The turns of one worker, and its signs of life, each of which asks for all of them. */
export class Holds {
  readonly #holds = new Set<Hold>();
  readonly #ledger: TurnLedger;
  readonly #runtime: Runtime;
  readonly #worker: string;
  readonly #version: string;

  constructor(
    ledger: TurnLedger,
    runtime: Runtime,
    { worker, version }: { readonly worker: string; readonly version: string },
  ) {
    this.#ledger = ledger;
    this.#runtime = runtime;
    this.#worker = worker;
    this.#version = version;
  }

  /** @param begun which turn, of which epoch, and when it was asked for */
  add(begun: HeldTurn & { readonly askedMs: number }): Hold {
    const hold = new Hold(this.#ledger, this.#runtime, begun);
    this.#holds.add(hold);
    return hold;
  }

  /** The worker has no more to do with it than what still runs of it. */
  leave(hold: Hold): void {
    hold.leave();
    this.#holds.delete(hold);
  }

  /** One sign of life. */
  beat(turns: number): Observable<unknown> {
    return defer(() => {
      const held = [...this.#holds];
      const askedMs = this.#runtime.now();
      return defer(() => this.#ledger.beat(this.#worker, this.#version, turns, held)).pipe(
        tap((standings) => {
          for (const [at, hold] of held.entries()) {
            if (standings[at] === 'taken') hold.take();
            else hold.confirm(askedMs);
            if (standings[at] === 'cancelled') hold.cancel();
          }
        }),
        catchError(() => EMPTY),
      );
    });
  }
}
