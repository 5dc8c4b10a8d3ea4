import { read } from '../../errors/structure.ts';

/** What Mastra gives a tool beside its input, as far as it is used; the rest is handed on. */
export interface ExecutionContext {
  readonly abortSignal?: AbortSignal | undefined;
  readonly agent?: { readonly toolCallId?: string } | undefined;
}

/** The id that the model gave the call. Beside an agent's tools it stands in the context itself. */
export const idOf = (_input: unknown, context?: ExecutionContext): string | undefined => {
  const id = context?.agent?.toolCallId ?? read(context, 'toolCallId');
  return typeof id === 'string' ? id : undefined;
};

/** The run's signal. */
export const signalOf = (_input: unknown, context?: ExecutionContext): AbortSignal | undefined => context?.abortSignal;
