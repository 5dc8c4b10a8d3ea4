import type { DedupeReading } from '../../contract/store.ts';
import { ToolExecutionError, type ToolExecutionErrorOptions } from '../../contract/tool-error.ts';
import type { ClaimDecision } from '../../policy/key/claim.ts';
import { failureText } from '../../policy/model-text.ts';

/** Of the call before, where nobody knows better. */
export const LAPSED = 'An earlier call under this idempotency key lost its lease and may have taken effect';

/** What is left to do where a safety-critical tool may have taken effect. */
export const FIND_OUT = 'a safety-critical tool is not run again: find out, then clear the key';

/** The store is lost while another call under the key runs, or may have: that nothing ran here is not all to tell. */
export const lostSight = (error: ToolExecutionError): ToolExecutionError => {
  if (error.classification === 'permanent') return error;
  const safeMessage = failureText('duplicate_in_flight', 'did_not_run');
  return new ToolExecutionError(error.kind, error.message, {
    ...(error as ToolExecutionErrorOptions),
    cause: error,
    safeMessage,
  });
};

/** What a call is told that gets neither the key nor what is remembered under it. */
export const KEY_REFUSALS: Readonly<
  Record<Extract<ClaimDecision, { act: 'refuse' }>['because'], (reading: DedupeReading) => ToolExecutionError>
> = {
  // No status: a 409 that a server answers is permanent, and this is not.
  busy: () =>
    new ToolExecutionError(
      'duplicate_in_flight',
      'Another call runs under this idempotency key; ask again when it has ended',
    ),
  conflict: () =>
    new ToolExecutionError(
      'conflict',
      'This idempotency key was used with another input; use a new key, ' +
        'or the same input to get the earlier result',
      { status: 422 },
    ),
  cancelled: ({ record }) =>
    new ToolExecutionError(
      'canceled',
      'The earlier call under this idempotency key was canceled while it ran and may have taken effect; ' +
        'clear the key to run it again',
      { uncertain: record.error?.uncertain === true },
    ),
  uncertain: () =>
    new ToolExecutionError('duplicate_in_flight', `${LAPSED}; ${FIND_OUT}`, {
      classification: 'permanent',
      uncertain: true,
    }),
};
