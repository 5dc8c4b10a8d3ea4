import type { ApprovalCause } from '../contract/gate/approval.ts';
import { callKey } from '../policy/key/call-key.ts';
import { DEDUPE_DEFAULTS } from '../policy/profile.ts';
import type { GateSubject } from '../layer/gate-port.ts';

const NAMESPACE = 'tools';

/**
 * Volatile by default for keys, and the name of a setting as well: who approved three retries has not approved fifty.
 * What a tool's own policy names is left out, whatever it is.
 */
const SETTING = 'retryCount';
const DEFAULTS = DEDUPE_DEFAULTS.volatile.length;

/** What JSON would leave out or make the same: two inputs that differ in it are two. */
const member = (_: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value instanceof Map || value instanceof Set ? [...(value as Iterable<unknown>)] : value;
};

/** As many as canonical JSON could have: what stands in an input a thousand times over is written as often. */
const VALUES_MAX = 1_000_000;

/**
 * What a schema made of an input and JSON does not know, such as a date, as JSON would write it.
 * @throws RangeError for more than anybody could wait for
 */
const written = (input: unknown): unknown => {
  let left = VALUES_MAX;
  const counted = (name: string, value: unknown): unknown => {
    if (left-- === 0) throw new RangeError(`the input has more than ${VALUES_MAX} values`);
    return member(name, value);
  };
  return JSON.parse(JSON.stringify(input, counted) ?? 'null');
};

const keyed = ({ context, guarded }: GateSubject, cause: ApprovalCause, params: unknown): string => {
  const { toolNamespace = NAMESPACE, session, actor, tenant, callId } = context.call;
  const { volatile, whitespace } = guarded.dedupe;
  return callKey(
    {
      namespace: JSON.stringify(['approval', cause, toolNamespace, cause === 'uncertain' ? callId : '']),
      toolName: guarded.tool.name,
      params,
      sessionKey: session,
      actorId: actor,
      tenantId: tenant,
    },
    { volatile: volatile.filter((name, place) => name !== SETTING || place >= DEFAULTS), whitespace },
  ).key;
};

/**
 * The record that stands for what a tool is about to be given, and for whom. It is the input as the tool's schema made
 * it: what was given to the call may be changed by its caller, and the tool would not hear of it.
 * @throws for an input that is no JSON
 */
export const approvalKey = (subject: GateSubject, cause: ApprovalCause): string => {
  const { input, context } = subject;
  const given = context.call.input;
  try {
    return keyed(subject, cause, input);
  } catch (error) {
    if (input === given) throw error;
    return keyed(subject, cause, [given, written(input)]);
  }
};

/** What tells an input from every other, also where it is no JSON; `undefined` for one that cannot be written. */
export const printOf = (subject: GateSubject): string | undefined => {
  try {
    return approvalKey(subject, 'needed');
  } catch {
    return printWritten(subject);
  }
};

/** Nobody can approve what is no JSON; that it needs no approval is still said of one input. */
const printWritten = (subject: GateSubject): string | undefined => {
  try {
    return keyed(subject, 'needed', ['written', written(subject.input)]);
  } catch {
    return undefined;
  }
};
