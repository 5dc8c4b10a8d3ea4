import type { ZodType } from 'zod';
import type { ToolCallEnvelope, ToolCallRequest } from '../contract/envelope.ts';
import type { NeedsApproval } from '../contract/gate/approval.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Runtime } from '../contract/runtime.ts';
import { read } from '../errors/structure.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { isPlain } from '../policy/key/canonical-json.ts';
import { correctable } from '../policy/advice.ts';
import { given } from '../policy/check.ts';
import type { DedupeMode } from '../policy/key/claim.ts';
import { issuesInWords, shaped } from '../policy/shape/parts.ts';
import { KEY_MAX, NAME_MAX, envelopeShape, requestShape } from '../policy/shape/request.ts';

/** A call as the layer runs it, from either form of a request. */
export interface Call {
  readonly callId: string;
  /** The id is the caller's own: it can be anything. */
  readonly foreignId?: true;
  readonly toolCallId?: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The plan node, when it is part of a turn. */
  readonly nodeId?: string;
  /** A person has to approve it, whatever its tool says. */
  readonly needsApproval?: NeedsApproval;
  /** The call in doubt that it finds out about, and the one that it undoes. */
  readonly verifies?: string;
  readonly undoes?: string;
  /** No budget limits it: it undoes something, or finds out what was done. */
  readonly unlimited?: true;
  /** Whether the turn cannot do without it. */
  readonly required: boolean;
  readonly idempotencyKey?: string;
  readonly dedupeMode: DedupeMode;
  readonly toolNamespace?: string;
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
  readonly correlationId?: string;
  readonly tags?: readonly string[];
  readonly fromHook?: string;
  readonly agentId?: string;
  readonly workspaceId?: string;
  readonly breakerHint?: 'tool' | 'dependency' | 'global';
  readonly retryBudget?: { readonly maxAttempts: number; readonly maxElapsedMs: number };
  readonly hints?: {
    readonly safetyCritical?: boolean;
    readonly expectedRetrySafe?: boolean;
    readonly timeoutMs?: number;
  };
  /** Monotonic; `Infinity` without a deadline of its own. */
  readonly deadlineMs: number;
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly baggage?: Readonly<Record<string, string>>;
}

const REQUEST_KEYS: ReadonlySet<string> = new Set([
  'toolName',
  'input',
  'toolCallId',
  'idempotencyKey',
  'session',
  'actor',
  'tenant',
  'traceparent',
  'timeoutMs',
]);

const isText = (value: unknown, max: number): boolean =>
  typeof value === 'string' && value !== '' && value.length <= max;

/** Says path and rule, no value: a model may read it and correct itself. */
const invalid = (what: string, problem: string, cause?: unknown): ToolExecutionError => {
  const message = `${what} is malformed: ${problem}`;
  return new ToolExecutionError('invalid_parameters', message, { safeMessage: correctable(message), cause });
};

const fromEnvelope = (envelope: ToolCallEnvelope, runtime: Runtime): Call => {
  const { target, payload, transport, control, trace } = envelope;
  return {
    callId: envelope.requestId,
    foreignId: true,
    toolName: envelope.toolName,
    input: payload.params,
    required: true,
    dedupeMode: transport.dedupeMode,
    toolNamespace: envelope.toolNamespace,
    session: target.sessionKey,
    actor: target.actorId,
    retryBudget: transport.retryBudget,
    // From the wall clock to the monotonic one, once: a clock that jumps later moves nothing.
    deadlineMs:
      control.deadlineAtMs === undefined ? Infinity : runtime.now() + (control.deadlineAtMs - runtime.wallNow()),
    ...given({
      toolCallId: envelope.toolCallId,
      idempotencyKey: payload.idempotencyKey,
      tenant: target.tenantId,
      correlationId: target.correlationId,
      agentId: target.agentId,
      workspaceId: target.workspaceId,
      tags: control.requestTags,
      fromHook: control.fromHook,
      breakerHint: transport.circuitBreakerHint,
      hints: payload.callHints,
      traceparent: trace.traceparent,
      tracestate: trace.tracestate,
      baggage: trace.baggage,
    }),
  };
};

const fromRequest = (
  { toolName, input, toolCallId, idempotencyKey, session, actor, tenant, traceparent, timeoutMs }: ToolCallRequest,
  runtime: Runtime,
): Call => {
  // Nobody gets yesterday's answer without asking.
  const dedupeMode = idempotencyKey === undefined ? 'disabled' : 'enforced';
  const call: { -readonly [Key in keyof Call]: Call[Key] } = {
    callId: runtime.id(),
    toolName,
    input,
    required: true,
    dedupeMode,
    deadlineMs: Infinity,
  };
  if (toolCallId !== undefined) call.toolCallId = toolCallId;
  if (idempotencyKey !== undefined) call.idempotencyKey = idempotencyKey;
  if (session !== undefined) call.session = session;
  if (actor !== undefined) call.actor = actor;
  if (tenant !== undefined) call.tenant = tenant;
  if (traceparent !== undefined) call.traceparent = traceparent;
  if (timeoutMs !== undefined) call.hints = { timeoutMs };
  return call;
};

/**
 * The short form, if it is well as it is; else its shape is to judge it, whose judgement costs as much as the rest of a
 * plain call. Each field is read once: a getter may give another value the next time.
 */
const wellFormed = (request: ToolCallRequest): ToolCallRequest | undefined => {
  for (const key in request) if (!REQUEST_KEYS.has(key)) return undefined;
  const { toolName, input, toolCallId, idempotencyKey, session, actor, tenant, traceparent, timeoutMs } = request;
  // Its shape judges it: few calls have one.
  if (timeoutMs !== undefined || 'timeoutMs' in request) return undefined;
  /** A text, or not there at all. */
  const may = (name: string, value: unknown, max: number): boolean =>
    value === undefined ? !(name in request) : isText(value, max);
  const well =
    isText(toolName, NAME_MAX) &&
    may('toolCallId', toolCallId, NAME_MAX) &&
    may('idempotencyKey', idempotencyKey, KEY_MAX) &&
    may('session', session, KEY_MAX) &&
    may('actor', actor, KEY_MAX) &&
    may('tenant', tenant, KEY_MAX) &&
    may('traceparent', traceparent, NAME_MAX);
  return well
    ? ({ toolName, input, toolCallId, idempotencyKey, session, actor, tenant, traceparent } as ToolCallRequest)
    : undefined;
};

const isEnvelope = (request: object): request is ToolCallEnvelope =>
  'contractVersion' in request || 'payload' in request || 'target' in request;

/** What a malformed request is called in its result. */
const text = (value: unknown, fallback: string): string =>
  typeof value === 'string' && value !== '' ? value.slice(0, 256) : fallback;

/**
 * A request read and checked: the call, or the error and what it can still be called by (TR-1). Never throws, whatever
 * a getter does.
 */
export function readRequest(
  request: ToolCallRequest | ToolCallEnvelope,
  runtime: Runtime,
): { readonly call: Call; readonly error?: ToolExecutionError } {
  const malformed = (error: ToolExecutionError): { readonly call: Call; readonly error: ToolExecutionError } => ({
    call: {
      callId: text(read(request, 'requestId'), runtime.id()),
      foreignId: true,
      toolName: text(read(request, 'toolName'), 'unknown'),
      input: undefined,
      required: true,
      dedupeMode: 'disabled',
      deadlineMs: Infinity,
    },
    error,
  });
  try {
    const isObject = typeof request === 'object' && request !== null && !Array.isArray(request);
    const envelope = isObject && isEnvelope(request);
    const well = isObject && !envelope ? wellFormed(request) : undefined;
    if (well !== undefined) return { call: fromRequest(well, runtime) };
    if (!envelope) {
      const { fits, problem } = shaped(requestShape, request);
      if (problem !== undefined) return malformed(invalid('The tool call request', problem));
      return { call: fromRequest(fits, runtime) };
    }
    const { fits, problem } = shaped(envelopeShape, request);
    if (problem !== undefined) return malformed(invalid('The tool call envelope', problem));
    return { call: fromEnvelope(fits, runtime) };
  } catch (error) {
    return malformed(
      new ToolExecutionError(
        'invalid_parameters',
        `The tool call request is malformed: reading it failed: ${toToolExecutionError(error).message}`,
      ),
    );
  }
}

/**
 * A value as a tool's schema gives it, or why it does not fit, with the path. To a schema that throws, or can only
 * answer later, nothing fits.
 */
export function fit(
  schema: ZodType | undefined,
  value: unknown,
): { readonly value: unknown; readonly problem?: string; readonly cause?: unknown } {
  if (schema === undefined) return { value };
  try {
    const parsed = schema.safeParse(value);
    return parsed.success ? { value: parsed.data } : { value, problem: issuesInWords(parsed.error.issues) };
  } catch (error) {
    // What it threw is for the host alone: the model reads `problem`.
    return { value, problem: 'its schema cannot check it: it throws, or can only answer later', cause: error };
  }
}

/** The input as the tool's schema gives it; an error that names the path when it does not fit. */
export function readInput(
  schema: ZodType | undefined,
  input: unknown,
): { readonly input: unknown; readonly error?: ToolExecutionError } {
  const { value, problem, cause } = fit(schema, input);
  return problem === undefined ? { input: value } : { input, error: invalid('The input', problem, cause) };
}

/**
 * An input as one attempt has it, for itself: what a tool changes in place must not reach the next attempt. Copied are
 * objects and lists, at any depth; what is of a class is passed on.
 */
export function ownInput(value: unknown, copies: Map<unknown, unknown> = new Map<unknown, unknown>()): unknown {
  if (typeof value !== 'object' || value === null || !(Array.isArray(value) || isPlain(value))) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>;
  copies.set(value, copy);
  for (const key of Object.keys(copy)) copy[key] = ownInput(copy[key], copies);
  return copy;
}
