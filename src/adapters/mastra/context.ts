import { read } from '../../errors/structure.ts';

/** What Mastra gives a tool beside its input, as far as it is used; the rest is handed on. */
export interface ExecutionContext {
  readonly abortSignal?: AbortSignal | undefined;
  readonly agent?: { readonly toolCallId?: string } | undefined;
  readonly requestContext?: object | undefined;
}

/** Where Mastra gives a tool its `suspend`: in the context itself, or in the part of who runs it. */
const PARTS = ['agent', 'workflow'];

const suspending = (asked: () => void, part: object): { readonly suspend?: unknown } => {
  const suspend = read(part, 'suspend');
  if (typeof suspend !== 'function') return {};
  return {
    suspend: (...args: unknown[]): unknown => {
      asked();
      return Reflect.apply(suspend, part, args);
    },
  };
};

/** The members of a context that suspend a run, made to tell of it. */
export const tellingOf = (asked: () => void, context: object): Readonly<Record<string, unknown>> => {
  const parts = PARTS.map((name) => [name, read(context, name)] as const).filter(
    (entry): entry is readonly [string, object] => typeof entry[1] === 'object' && entry[1] !== null,
  );
  const own = parts.map(([name, part]) => [name, { ...part, ...suspending(asked, part) }]);
  return { ...suspending(asked, context), ...(Object.fromEntries(own) as object) };
};

/** The id that the model gave the call. Beside an agent's tools it stands in the context itself. */
export const idOf = (_input: unknown, context?: ExecutionContext): string | undefined => {
  const id = context?.agent?.toolCallId ?? read(context, 'toolCallId');
  return typeof id === 'string' ? id : undefined;
};

/** What Mastra makes for each run, or its host for each request. */
export const runOf = (_input: unknown, context?: ExecutionContext): object | undefined => context?.requestContext;

/** The run's signal. */
export const signalOf = (_input: unknown, context?: ExecutionContext): AbortSignal | undefined => context?.abortSignal;
