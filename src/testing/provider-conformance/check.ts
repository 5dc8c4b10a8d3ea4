import { firstValueFrom, lastValueFrom, map, race, type Observable } from 'rxjs';
import type { ToolCallEnvelope, ToolResultEnvelope } from '../../contract/envelope.ts';
import type { TraceEvent } from '../../contract/event.ts';
import type { ToolPolicy } from '../../contract/policy.ts';
import type { ToolProvider } from '../../contract/provider.ts';
import type { FailureNotification } from '../../contract/recovery.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import type { ToolContext } from '../../contract/tool.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { fromOutput } from '../../operators/work/output.ts';
import { liveRuntime } from '../../runtime.ts';

type Awaitable<T> = T | Promise<T>;

/** A call that a case makes. */
export interface ConformanceCall {
  /** The tool's name in the layer: `provider.tool`. */
  readonly toolName: string;
  /** The input of the call. */
  readonly input: Readonly<Record<string, unknown>>;
}

/** A call as the backend saw it. */
export interface BackendCall {
  /** `running`: not answered yet; `aborted`: the backend learned that nobody waits any more. */
  readonly state: 'running' | 'answered' | 'aborted';
  /** The idempotency key that arrived with it; absent where the wire carries none. */
  readonly callKey?: string | undefined;
  /** The W3C trace context that arrived with it; absent where the wire carries none. */
  readonly traceparent?: string | undefined;
  /** The W3C baggage that arrived with it, as its wire carries it: `key=value,key=value`, percent-encoded. */
  readonly baggage?: string | undefined;
}

/** What a provider's calls end up at, as far as a test can see and steer it. */
export interface ProviderBackend {
  /** The calls of tools that reached the backend so far, in order. */
  readonly calls: () => Awaitable<readonly BackendCall[]>;
  /** Ends the backend as a crash would, so that it cannot be reached any more. */
  readonly kill?: () => Awaitable<unknown>;
  /** How many connections, sessions and processes the provider holds there. */
  readonly held?: () => Awaitable<number>;
  /** Ends the backend, after the provider was closed. */
  readonly close: () => Awaitable<unknown>;
}

/**
 * The calls that a backend must have tools for. One that it cannot have is left out, and so are the cases that need it.
 */
export interface ConformanceCalls {
  /** A call that answers with the text, after so many milliseconds. */
  readonly echo: (text: string, delayMs: number) => ConformanceCall;
  /** A call that never answers by itself. */
  readonly hang: () => ConformanceCall;
  /** A call that fails after its tool ran. */
  readonly fail: () => ConformanceCall;
  /** Calls whose input does not fit, one of each kind there is: a wrong type, a missing key, an unknown agent. */
  readonly invalid: readonly ConformanceCall[];
  /** A call that reports progress at least twice, then answers. */
  readonly steps?: () => ConformanceCall;
  /** A call that is turned away before its tool ran, with a `Retry-After` of 7 seconds. */
  readonly busy?: () => ConformanceCall;
  /** A call of a tool that the provider has listed and the backend no longer has. */
  readonly gone?: () => ConformanceCall;
}

/**
 * What a backend may lack; the cases about it are left out. `close`: the provider holds nothing, and its calls are
 * ended by the layer alone.
 */
export type ProviderCapability = 'progress' | 'retryAfter' | 'gone' | 'kill' | 'close';

/** A provider to be tried, and its backend. */
export interface ProviderHarness {
  /** The provider that is tried: newly made, and used by nobody else. */
  readonly provider: ToolProvider;
  /** What the provider's calls end up at. */
  readonly backend: ProviderBackend;
  /** The calls that the cases make. */
  readonly calls: ConformanceCalls;
  /** What the provider was given and no error may show: tokens in headers, variables, addresses. Default: none. */
  readonly secrets?: readonly string[];
}

/** The layer that calls are made through: what `createSpillway` gives. */
export interface ConformanceLayer {
  /** Makes a call and gives its result; a tool's failure is a result, too. */
  execute(
    request: ToolCallEnvelope,
    options?: {
      /** Cancels the call. */
      readonly signal?: AbortSignal;
    },
  ): Promise<ToolResultEnvelope>;
  /** Every failed attempt, with its error. */
  readonly failures$: Observable<FailureNotification>;
  /** Everything that happens in the layer. */
  readonly trace$: Observable<TraceEvent>;
  /** Ends the layer; the provider is closed by the case. */
  close(): Promise<void>;
}

/** Makes a layer for one case: `createSpillway`. */
export type MakeLayer = (options: {
  /** The provider that is tried. */
  readonly providers: readonly ToolProvider[];
  /** The policy of its tools: a timeout of `patienceMs`, and no breaker. */
  readonly defaults: ToolPolicy;
}) => ConformanceLayer;

/** What a case works with. */
export interface Bench extends ProviderHarness {
  readonly layer: ConformanceLayer;
  /** Every failure so far. */
  readonly failures: readonly ToolExecutionError[];
  /** Makes a call, once. */
  readonly call: (
    call: ConformanceCall,
    options?: {
      readonly signal?: AbortSignal;
      readonly timeoutMs?: number;
      readonly key?: string;
      readonly trace?: ToolCallEnvelope['trace'];
    },
  ) => Promise<ToolResultEnvelope>;
  /** Runs a call's tool by itself, with no layer that would answer in its place. */
  readonly execute: (call: ConformanceCall, signal: AbortSignal) => Promise<unknown>;
  /** The error that a call fails with. */
  readonly failure: (work: Promise<ToolResultEnvelope>) => Promise<ToolExecutionError>;
  /** Waits until something holds; with a real backend there is no other way. */
  readonly eventually: (holds: () => boolean | Promise<boolean>, what: string) => Promise<void>;
}

/** A case as a file of them has it. */
export interface BenchCase {
  readonly name: string;
  /** What it is about, if a backend may lack that. */
  readonly about?: ProviderCapability;
  readonly run: (bench: Bench) => Promise<void>;
}

/** @throws Error with `what` unless `holds` */
export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** What work gives, or an Error when it takes longer. */
export function within<T>(work: Promise<T>, ms: number, what: string): Promise<T> {
  const late$ = liveRuntime.after(ms).pipe(
    map(() => {
      throw new Error(`${what} took longer than ${ms} ms`);
    }),
  );
  return firstValueFrom(
    race(
      abortable(() => work),
      late$,
    ),
  );
}

const POLL_MS = 10;

/** An error in one line, for a message. */
export const told = ({ kind, executed, uncertain, message }: ToolExecutionError): string =>
  `${kind}, ${executed ? 'executed' : 'not executed'}${uncertain ? ', uncertain' : ''}: ${message}`;

export function bench(harness: ProviderHarness, createSpillway: MakeLayer, patienceMs: number): Bench {
  const { provider } = harness;
  const layer = createSpillway({ providers: [provider], defaults: { timeoutMs: patienceMs, breaker: false } });
  const failures: ToolExecutionError[] = [];
  const byCall = new Map<string, ToolExecutionError>();
  layer.failures$.subscribe(({ callId, error }) => {
    failures.push(error);
    byCall.set(callId, error);
  });
  return {
    ...harness,
    layer,
    failures,
    call: ({ toolName, input }, { signal, timeoutMs, key, trace = {} } = {}) =>
      layer.execute(
        {
          contractVersion: '1.1',
          requestId: liveRuntime.id(),
          toolName,
          toolNamespace: provider.name,
          target: { sessionKey: 'conformance', actorId: 'conformance' },
          payload: {
            version: '1.0',
            params: { ...input },
            ...(key === undefined ? {} : { idempotencyKey: key }),
            ...(timeoutMs === undefined ? {} : { callHints: { timeoutMs } }),
          },
          transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 1, maxElapsedMs: patienceMs } },
          control: {},
          trace,
        },
        signal === undefined ? {} : { signal },
      ),
    execute: async ({ toolName, input }, signal) => {
      const tool = provider.tools.find(({ name }) => name === toolName);
      check(tool !== undefined, `the provider should have a tool ${toolName}`);
      const context: ToolContext = { signal, attempt: 1, callKey: liveRuntime.id(), progress: () => undefined };
      return lastValueFrom(fromOutput(tool.execute(input as never, context)), { defaultValue: undefined });
    },
    failure: async (work) => {
      const { requestId, toolName, status, output } = await within(work, 2 * patienceMs, 'The call');
      const error = byCall.get(requestId);
      check(
        error !== undefined,
        `${toolName} should have failed; its status is ${status}, its output ${JSON.stringify(output?.content)}`,
      );
      return error;
    },
    eventually: async (holds, what) => {
      const endMs = liveRuntime.now() + patienceMs;
      while (!(await holds())) {
        check(liveRuntime.now() < endMs, `${what}, which did not happen within ${patienceMs} ms`);
        await firstValueFrom(liveRuntime.after(POLL_MS));
      }
    },
  };
}
