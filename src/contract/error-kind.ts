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

/** What an error kind is to those who decide. */
export interface ToolErrorKindTraits {
  /** Whether the tool ran, and so may have had effects. An error's own `executed` wins over it. */
  readonly executed: boolean;
  /** The class of the kind, where it has one of its own. */
  readonly classification?: Classification;
}

/** What an error kind says about the call that ended with it. */
export interface ToolErrorKindMeaning extends ToolErrorKindTraits {
  /** A sentence for a person or a model; it carries nothing from the error itself. */
  readonly description: string;
}

/** Of every kind, apart from the sentences, which not everyone needs. */
export const TOOL_ERROR_KIND_TRAITS: Readonly<Record<ToolErrorKind, ToolErrorKindTraits>> = {
  unknown_tool: { executed: false, classification: 'permanent' },
  not_permitted: { executed: false, classification: 'permanent' },
  invalid_parameters: { executed: false, classification: 'permanent' },
  limit_exceeded: { executed: false, classification: 'permanent' },
  canceled: { executed: false, classification: 'permanent' },
  timeout: { executed: true, classification: 'transient' },
  transport_error: { executed: true, classification: 'transient' },
  execution_error: { executed: true },
  internal_error: { executed: true },
  circuit_open: { executed: false, classification: 'transient' },
  dependency_failed: { executed: false, classification: 'permanent' },
  deadline_exceeded: { executed: false, classification: 'transient' },
  conflict: { executed: false, classification: 'permanent' },
  duplicate_in_flight: { executed: false, classification: 'transient' },
  blocked: { executed: false, classification: 'permanent' },
  retry_budget_exhausted: { executed: false, classification: 'transient' },
  store_unavailable: { executed: false, classification: 'transient' },
};

/** Every kind there is. */
export const TOOL_ERROR_KINDS: readonly ToolErrorKind[] = /* @__PURE__ */ Object.keys(
  TOOL_ERROR_KIND_TRAITS,
) as ToolErrorKind[];

/** The sentence of every kind, for a person or a model; it carries nothing from the error itself. */
export const TOOL_ERROR_KIND_DESCRIPTIONS: Readonly<Record<ToolErrorKind, string>> = {
  unknown_tool: 'No tool of this name exists.',
  not_permitted: 'This tool may not be used here.',
  invalid_parameters: 'The input does not fit the tool’s schema.',
  limit_exceeded: 'A limit on tool calls was reached.',
  canceled: 'The caller canceled the call.',
  timeout: 'The tool did not answer in time; it may have taken effect.',
  transport_error: 'The connection to the tool failed.',
  execution_error: 'The tool ran and failed.',
  internal_error: 'The tool call failed unexpectedly.',
  circuit_open: 'The tool has failed repeatedly and is resting; it was not called.',
  dependency_failed: 'A call this one needs failed, so it was not made.',
  deadline_exceeded: 'The deadline passed before the call could be made.',
  conflict: 'The idempotency key was already used with another input.',
  duplicate_in_flight: 'The same call is already running.',
  blocked: 'The call was blocked.',
  retry_budget_exhausted: 'Too many retries are under way; this one was not made.',
  store_unavailable: 'The store that guards against duplicates is unavailable.',
};

const meanings = (): Record<ToolErrorKind, ToolErrorKindMeaning> => {
  const meaningOf = (kind: ToolErrorKind): ToolErrorKindMeaning => ({
    ...TOOL_ERROR_KIND_TRAITS[kind],
    description: TOOL_ERROR_KIND_DESCRIPTIONS[kind],
  });
  return Object.fromEntries(TOOL_ERROR_KINDS.map((kind) => [kind, meaningOf(kind)])) as Record<
    ToolErrorKind,
    ToolErrorKindMeaning
  >;
};

/** The meaning of every kind, in code. */
export const TOOL_ERROR_KIND_MEANINGS: Readonly<Record<ToolErrorKind, ToolErrorKindMeaning>> =
  /* @__PURE__ */ meanings();
