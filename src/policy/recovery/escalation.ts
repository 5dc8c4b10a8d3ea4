import type { FailureNotification } from '../../contract/recovery.ts';
import { textRedactor } from '../redact/text.ts';

const withoutSecrets = textRedactor();

/** What a person may choose when a failure is brought before them. */
export type EscalationChoice =
  | 'try_again_later'
  | 'change_the_input'
  | 'use_an_alternative'
  | 'check_whether_it_took_effect'
  | 'undo_by_hand'
  | 'leave_it'
  | 'provide_the_value'
  | 'continue_without'
  | 'cancel';

/** A failure in words for a person. */
export interface Escalation {
  /** One sentence. */
  readonly message: string;
  /** What is open to the person, likeliest first. */
  readonly choices: readonly EscalationChoice[];
}

/**
 * Words a failure for a person, and says what is open to them. The error's own text is left to the evidence beside it.
 *
 * @param redact takes secrets out of the tool's name, before `_` becomes a space and nothing knows them any more; what
 * looks like one by default
 */
export function escalationOf(
  { toolName, error, attempt, classification, alternatives }: FailureNotification,
  redact: (name: string) => string = withoutSecrets,
): Escalation {
  const times = attempt === 0 ? 'could not be called' : `failed after ${attempt} attempt${attempt === 1 ? '' : 's'}`;
  const effect = error.uncertain ? ', and it may have taken effect' : '';
  return {
    message: `${redact(toolName).replaceAll('_', ' ')} ${times} (${error.kind.replaceAll('_', ' ')})${effect}`,
    choices: [
      ...(error.uncertain ? ['check_whether_it_took_effect' as const] : []),
      classification === 'transient' ? 'try_again_later' : 'change_the_input',
      ...(alternatives.length > 0 ? ['use_an_alternative' as const] : []),
      'continue_without',
      'cancel',
    ],
  };
}
