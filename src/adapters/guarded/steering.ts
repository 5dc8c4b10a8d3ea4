import { pausing } from '../../layer/foreign.ts';

/** What was thrown to steer a framework, such as an interrupt: no failure, and thrown on once the call has settled. */
export class Steering {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    this.thrown = thrown;
    // No later call of its key may be given it: once a person has answered, the tool runs.
    pausing(this);
  }
}
