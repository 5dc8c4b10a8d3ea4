import { pausing } from '../../layer/foreign.ts';

/** What a tool steered its framework with, such as an interrupt: no failure, and no result either. */
export class Steering {
  /** Throws or gives it, once the call has settled. */
  readonly passOn: () => unknown;

  private constructor(passOn: () => unknown) {
    this.passOn = passOn;
    // No later call of its key may be given it: once a person has answered, the tool runs.
    pausing(this);
  }

  static thrown(thrown: unknown): Steering {
    return new Steering(() => {
      throw thrown;
    });
  }

  /** Of a tool that asked a person by its context, and then gave `value`. */
  static given(value: unknown): Steering {
    return new Steering(() => value);
  }
}
