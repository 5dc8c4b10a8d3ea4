import type { Classification, ToolErrorKind } from '../../contract/error-kind.ts';
import type { LlmErrorKind } from '../../contract/llm-error.ts';
import type { ToolExecutionErrorOptions } from '../../contract/tool-error.ts';

/**
 * What happened, whoever says it: codes, class names and words are read into one of these, and each place where errors
 * enter makes its own kind of it. So that every word is in one table only.
 */
export type Sense =
  | 'unauthorized'
  | 'quota_exhausted'
  | 'rate_limited'
  | 'timed_out'
  | 'connect_timed_out'
  | 'unreachable'
  | 'lost'
  | 'untrusted'
  | 'unavailable'
  | 'rejected'
  | 'canceled';

/** Names, such as codes, by what they mean. */
export type NamesBySense = Partial<Readonly<Record<Sense, readonly string[]>>>;

/** Each name with its sense. */
export const sensesOf = (table: NamesBySense): ReadonlyArray<readonly [string, Sense]> =>
  Object.entries(table).flatMap(([sense, names]) => names.map((name) => [name, sense as Sense] as const));

/** A kind of tool error, and what is known beside it. */
export interface Meaning {
  readonly kind: ToolErrorKind;
  readonly options: ToolExecutionErrorOptions;
}

const answered = (classification: Classification): Meaning => ({
  kind: 'execution_error',
  options: { classification },
});

/** What each sense is as an error of a tool. A connection that was never made ran nothing; one lost later may have. */
export const TOOL_MEANINGS: Readonly<Record<Sense, Meaning>> = {
  unauthorized: answered('permanent'),
  quota_exhausted: answered('permanent'),
  rate_limited: answered('transient'),
  timed_out: { kind: 'timeout', options: { uncertain: true } },
  connect_timed_out: { kind: 'timeout', options: { executed: false } },
  unreachable: { kind: 'transport_error', options: { executed: false } },
  lost: { kind: 'transport_error', options: { uncertain: true } },
  untrusted: { kind: 'transport_error', options: { executed: false, classification: 'permanent' } },
  unavailable: answered('transient'),
  rejected: answered('permanent'),
  canceled: { kind: 'canceled', options: { executed: true, uncertain: true } },
};

/** What each sense is as an error of a model. */
export const LLM_KINDS: Readonly<Record<Sense, LlmErrorKind>> = {
  unauthorized: 'auth_error',
  quota_exhausted: 'quota_exceeded',
  rate_limited: 'rate_limit',
  timed_out: 'timeout',
  connect_timed_out: 'timeout',
  unreachable: 'network_error',
  lost: 'network_error',
  untrusted: 'network_error',
  unavailable: 'network_error',
  rejected: 'model_error',
  canceled: 'model_error',
};

const PERMANENT: ReadonlySet<Sense> = new Set<Sense>([
  'unauthorized',
  'quota_exhausted',
  'untrusted',
  'rejected',
  'canceled',
]);

/** Whether what happened can go otherwise the next time. */
export function classOfSense(sense: Sense): Classification {
  return PERMANENT.has(sense) ? 'permanent' : 'transient';
}
