/** Whether asking again can help: `transient` may be retried, `permanent` may not. */
export type Classification = 'transient' | 'permanent';

/** Every way a tool call can fail. Closed, so that a `switch` over it is checked by the compiler. */
export type ToolErrorKind =
  | 'unknown_tool'
  | 'not_permitted'
  | 'invalid_parameters'
  | 'limit_exceeded'
  | 'canceled'
  | 'timeout'
  | 'transport_error'
  | 'execution_error'
  | 'internal_error'
  | 'circuit_open'
  | 'dependency_failed'
  | 'deadline_exceeded'
  | 'conflict'
  | 'duplicate_in_flight'
  | 'blocked'
  | 'retry_budget_exhausted'
  | 'store_unavailable';

/** What an error kind says about the call that ended with it. */
export interface ToolErrorKindMeaning {
  /** Whether the tool ran, and so may have had effects. An error's own `executed` wins over it. */
  readonly executed: boolean;
  /** The class of the kind, where it has one of its own. */
  readonly classification?: Classification;
  /** A sentence for a person or a model; it carries nothing from the error itself. */
  readonly description: string;
}

/** The meaning of every kind, in code. */
export const TOOL_ERROR_KIND_MEANINGS: Readonly<Record<ToolErrorKind, ToolErrorKindMeaning>> = {
  unknown_tool: { executed: false, classification: 'permanent', description: 'No tool of this name exists.' },
  not_permitted: { executed: false, classification: 'permanent', description: 'This tool may not be used here.' },
  invalid_parameters: { executed: false, classification: 'permanent', description: 'The input does not fit the tool’s schema.' },
  limit_exceeded: { executed: false, classification: 'permanent', description: 'A limit on tool calls was reached.' },
  canceled: { executed: false, classification: 'permanent', description: 'The caller canceled the call.' },
  timeout: { executed: true, classification: 'transient', description: 'The tool did not answer in time; it may have taken effect.' },
  transport_error: { executed: true, classification: 'transient', description: 'The connection to the tool failed.' },
  execution_error: { executed: true, description: 'The tool ran and failed.' },
  internal_error: { executed: true, description: 'The tool call failed unexpectedly.' },
  circuit_open: { executed: false, classification: 'transient', description: 'The tool has failed repeatedly and is resting; it was not called.' },
  dependency_failed: { executed: false, classification: 'permanent', description: 'A call this one needs failed, so it was not made.' },
  deadline_exceeded: { executed: false, classification: 'transient', description: 'The deadline passed before the call could be made.' },
  conflict: { executed: false, classification: 'permanent', description: 'The idempotency key was already used with another input.' },
  duplicate_in_flight: { executed: false, classification: 'transient', description: 'The same call is already running.' },
  blocked: { executed: false, classification: 'permanent', description: 'The call was blocked.' },
  retry_budget_exhausted: { executed: false, classification: 'transient', description: 'Too many retries are under way; this one was not made.' },
  store_unavailable: { executed: false, classification: 'transient', description: 'The store that guards against duplicates is unavailable; the call was not made.' },
};
