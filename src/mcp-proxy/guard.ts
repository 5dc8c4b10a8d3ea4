import { catchError, defer, from, map, switchMap, throwError, type Observable } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';
import { mcpErrorResult, mcpThrown } from '../errors/mcp.ts';
import { abortable } from '../operators/work/abortable.ts';
import { failureText } from '../policy/model-text.ts';
import { canonicalJson } from '../policy/key/canonical-json.ts';
import { sha256 } from '../policy/key/sha256.ts';
import { mayHaveActed } from '../policy/mcp-hints.ts';
import { confirmed, isClaim, unconfirmed } from '../policy/recovery/refusal.ts';
import type { Spillway } from '../spillway.ts';
import { bounded, failed } from './answer.ts';
import { METHODS, RpcError, VERSION_META_KEY, isRecord, metaOf, type Id, type Params } from './message.ts';
import type { McpUpstream } from './upstream.ts';

/** A `tools/call` of a client. */
export interface ToolCall {
  readonly upstream: McpUpstream;
  /** The tool's name at its server. */
  readonly name: string;
  readonly params: Params;
  readonly askedAs: Id;
  readonly progress?: (params: Params) => void;
}

/** Runs the calls of tools under one layer, for all clients. */
export interface ProxyGuard {
  /** Emits the result of a call, or errors with the server's own error. */
  call$(call: ToolCall): Observable<unknown>;
}

export interface ProxyGuardOptions {
  readonly layer: Pick<Spillway, 'execute'>;
  /** The key of `_meta` under which a client says that a call is the same as one before. */
  readonly keyName: string;
  /** The longest result that is passed on, in bytes. */
  readonly maxOutputBytes: number;
}

/** A key has 512 characters in all, of which a round takes 65. */
const KEY_MAX_CHARS = 447;

/** What a failed attempt came with: what the client gets where it was the last. */
type Raw = { readonly result: unknown } | { readonly error: RpcError };

/** Which questions are answered, whatever the answers are. */
const questionsIn = (inputResponses: unknown): readonly string[] =>
  isRecord(inputResponses) ? Object.keys(inputResponses).toSorted() : [];

/**
 * The round of a call that a person was asked about: the state that the server sent along, and which of its questions
 * are answered. Under the client's key alone the second round would be the first one once more. With the answers in it
 * a second answer to the same question would make the call a second time.
 */
const roundOf = ({ requestState, inputResponses }: Params): string =>
  requestState === undefined && inputResponses === undefined
    ? ''
    : `#${sha256(canonicalJson([requestState ?? null, questionsIn(inputResponses)], { volatile: [] }))}`;

const keyOf = (params: Params, keyName: string): { readonly idempotencyKey?: string } => {
  const given = metaOf(params)[keyName];
  if (typeof given !== 'string' || given === '') return {};
  if (given.length <= KEY_MAX_CHARS) return { idempotencyKey: `${given}${roundOf(params)}` };
  throw new RpcError(-32_602, `_meta ${keyName} must be at most ${KEY_MAX_CHARS} characters long, not ${given.length}`);
};

/**
 * What the server only claims not to have done may have been done, unless it lists no such tool, and did not when the
 * call was made.
 */
const judged = (error: ToolExecutionError, { upstream, name }: ToolCall, wasListed: boolean): ToolExecutionError => {
  if (!isClaim(error)) return error;
  return wasListed || upstream.listing.has(name) ? unconfirmed(error) : confirmed(error);
};

/** One attempt: the tool's result, or a typed failure; `note` is told what the server itself said. */
const attempt$ = (
  call: ToolCall,
  wasListed: boolean,
  input: unknown,
  options: ProxyGuardOptions,
  note: (raw: Raw) => void,
): Observable<unknown> => {
  const { upstream, name, params, askedAs, progress } = call;
  const isModern = VERSION_META_KEY in metaOf(params);
  const asked = {
    method: METHODS.call,
    params: input === undefined ? params : { ...params, arguments: input },
    askedAs,
    ...(progress === undefined ? {} : { progress }),
  };
  return upstream.request$(asked).pipe(
    catchError((thrown: unknown) => {
      if (thrown instanceof RpcError) note({ error: thrown });
      return throwError(() => judged(mcpThrown(thrown, name), call, wasListed));
    }),
    map((result) => {
      const within = bounded(result, options.maxOutputBytes, isModern);
      if (within !== result || !isRecord(result) || result['isError'] !== true) return within;
      note({ result });
      throw judged(mcpErrorResult(result, name), call, wasListed);
    }),
  );
};

const reads = ({ policy }: Tool): boolean => policy?.effects === 'read';

/**
 * A further attempt at a tool that only read when its call began. By now its server may say that it does more, and then
 * the attempts before may have done it.
 */
const again$ = ({ upstream, name }: ToolCall, work$: Observable<unknown>): Observable<unknown> =>
  defer(() => from(upstream.listed())).pipe(
    switchMap(() => (reads(upstream.listing.of(name)) ? work$ : throwError(mayHaveActed))),
  );

/** What the client gets of a call that failed: what the server said last, else what a model should know. */
const failure = ({ error }: ToolResultEnvelope, raw: Raw | undefined, isModern: boolean): unknown => {
  if (raw !== undefined && 'error' in raw) throw raw.error;
  if (raw !== undefined) return raw.result;
  return failed(error?.modelText ?? failureText('internal_error', 'may_have_run'), isModern);
};

const traceOf = (params: Params): { readonly traceparent?: string } => {
  const { traceparent } = metaOf(params);
  return typeof traceparent === 'string' && /^[\da-f-]{1,256}$/i.test(traceparent) ? { traceparent } : {};
};

/** Puts calls under a layer: its timeouts, retries, breakers, keys and trace. */
export function createGuard(options: ProxyGuardOptions): ProxyGuard {
  const run = async (call: ToolCall, signal: AbortSignal): Promise<unknown> => {
    const { upstream, name, params } = call;
    const key = keyOf(params, options.keyName);
    await upstream.listed();
    const wasListed = upstream.listing.has(name);
    const tool = upstream.listing.of(name);
    let raw: Raw | undefined;
    const result = await options.layer.execute(
      { toolName: tool.name, input: params['arguments'], ...key, ...traceOf(params) },
      {
        signal,
        tool,
        execute: (input: unknown, context: ToolContext) => {
          raw = undefined;
          context.holdWhile?.(upstream.waiting());
          const work$ = defer(() => attempt$(call, wasListed, input, options, (said) => (raw = said)));
          return context.attempt > 1 && reads(tool) ? again$(call, work$) : work$;
        },
      },
    );
    if (result.error?.code === 'timeout') upstream.suspect();
    return result.error === undefined
      ? result.output?.content
      : failure(result, raw, VERSION_META_KEY in metaOf(params));
  };
  return { call$: (call) => abortable((signal) => run(call, signal)) };
}
