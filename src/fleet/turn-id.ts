import { redactorOf } from '../policy/redact/values.ts';

const TURN_ID = /^[A-Za-z0-9_.~-]{1,128}$/;
const redactor = redactorOf();

/**
 * @throws RangeError for an id that cannot be part of keys, of a queue's job and of a trace: there, what looks like a
 *   secret is taken out
 */
export function checkTurnId(turnId: string): void {
  if (typeof turnId !== 'string' || !TURN_ID.test(turnId))
    throw new RangeError(
      'turnId must be 1 to 128 of the characters A-Z a-z 0-9 _ . ~ -, not ' +
        JSON.stringify(String(turnId).slice(0, 64)),
    );
  if (redactor.text(turnId) !== turnId)
    throw new RangeError('turnId must not look like a secret, which the trace would take out of it; take a UUID');
}
