import { Observable } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import type { Dice } from '../dice.ts';

const SILENT_MS = 1_000;

/** A process on a machine of its own: it can be killed, stand still, or be cut off from what all share. */
export class Machine {
  readonly name: string;
  readonly runtime: Runtime;
  readonly #base: Runtime;
  readonly #dice: Dice;
  isDead = false;
  /** It stood still or was cut off at some time: it may believe what is no longer so. */
  wasAway = false;
  #awakeAtMs = 0;
  #backAtMs = 0;

  constructor(name: string, base: Runtime, dice: Dice) {
    this.name = name;
    this.#base = base;
    this.#dice = dice;
    const own: Runtime = { ...base, after: (ms) => this.#timer(ms) };
    this.runtime = { ...own, background: own };
  }

  kill(): void {
    this.isDead = true;
  }

  freeze(ms: number): void {
    this.wasAway = true;
    this.#awakeAtMs = this.#base.now() + ms;
  }

  cut(ms: number): void {
    this.wasAway = true;
    this.#backAtMs = this.#base.now() + ms;
  }

  get isCut(): boolean {
    return this.#base.now() < this.#backAtMs;
  }

  /** Nothing happens in a process that is dead, and later in one that stands still. */
  #timer(ms: number): Observable<0> {
    return new Observable((subscriber) => {
      const fire = (): void => {
        if (this.isDead) return;
        const leftMs = this.#awakeAtMs - this.#base.now();
        if (leftMs > 0) subscriber.add(this.#base.after(leftMs).subscribe(fire));
        else {
          subscriber.next(0);
          subscriber.complete();
        }
      };
      subscriber.add(this.#base.after(ms).subscribe(fire));
    });
  }

  #later(): Promise<void> {
    return new Promise((resolve) => {
      this.#timer(this.#dice.int(0, 3)).subscribe(() => resolve());
    });
  }

  /** Asks what all share, over a network that takes its time, and loses questions or answers while it is cut. */
  async ask<T>(question: () => T | PromiseLike<T>): Promise<T> {
    await this.#later();
    // A question that is lost on its way may have been heard.
    const isHeard = !this.isCut || this.#dice.chance(0.3);
    const answer = isHeard ? await question() : undefined;
    await this.#later();
    if (!this.isCut && isHeard) return answer as T;
    await new Promise<void>((resolve) => {
      this.#timer(SILENT_MS).subscribe(() => resolve());
    });
    throw new ToolExecutionError('store_unavailable', 'no answer');
  }

  /** The same object, asked over the network. */
  over<T extends object>(shared: T, methods: readonly (keyof T & string)[]): T {
    return new Proxy(shared, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        const own = (...given: unknown[]): unknown => Reflect.apply(member, target, given) as unknown;
        if (!(methods as readonly (string | symbol)[]).includes(name)) return own;
        return (...given: unknown[]): Promise<unknown> => this.ask(() => own(...given));
      },
    });
  }
}
