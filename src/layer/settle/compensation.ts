import type { Effects, ToolPolicy } from '../../contract/policy.ts';
import type { Compensate, CompensateCall, CompensatePolicy } from '../../contract/settle/compensate.ts';
import type { AnyTool } from '../../contract/tool.ts';
import { checkKeys, checkNumber, given, positiveDuration } from '../../policy/check.ts';
import { RETRY_PROFILES } from '../../policy/profile.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import { filled, type Fill } from '../../policy/settle/filled.ts';

/** How what a call did is undone. */
export interface Undoing {
  /** A function of the tool's or the node's. Absent where another tool undoes. */
  readonly run?: Compensate;
  /** Another tool, and what it is given. */
  readonly call?: { readonly tool: string; readonly input: Fill };
  /** How `run` is guarded. */
  readonly policy: CompensatePolicy;
  /** Who must act when it cannot be undone. */
  readonly owner: string;
}

const KEYS = ['tool', 'input', 'timeoutMs', 'retry', 'enforcesKey', 'owner'];
/** What an undoing by data can refer to. */
const FACTS = ['output', 'input', 'callKey', 'reason'];
const OWNER = 'a person';
const OWNER_MAX = 256;

/**
 * How long an undoing is remembered: longer than any journal can ask for it again, which lives a week from its last
 * change.
 */
export const UNDO_KEEP_MS = 2_419_200_000;

/** @throws RangeError for a part that is out of range or cannot be read */
export const checkCompensate = (compensate: CompensatePolicy | false | undefined): void => {
  if (compensate === false || compensate === undefined) return;
  if (typeof compensate !== 'object' || compensate === null)
    throw new RangeError(`compensate of a policy must be an object or false, not ${typeof compensate}`);
  checkKeys('compensate', compensate, KEYS);
  const { tool, timeoutMs, retry, enforcesKey, owner } = compensate;
  if (timeoutMs !== undefined) checkNumber('compensate.timeoutMs', timeoutMs, positiveDuration);
  // Found out only when something is to be undone, it would stay.
  if (retry !== undefined) checkRetry(retry);
  if (enforcesKey !== undefined && typeof enforcesKey !== 'boolean')
    throw new RangeError(`compensate.enforcesKey must be true or false, not ${typeof enforcesKey}`);
  if (owner !== undefined && (typeof owner !== 'string' || owner === '' || owner.length > OWNER_MAX))
    throw new RangeError(`compensate.owner must be a text of 1 to ${OWNER_MAX} characters`);
  if ((tool !== undefined || 'input' in compensate) && (typeof tool !== 'string' || tool === ''))
    throw new RangeError('compensate.tool must name the tool that undoes');
  const idle = (['timeoutMs', 'retry'] as const).find((name) => compensate[name] !== undefined);
  if (tool !== undefined && idle !== undefined)
    throw new RangeError(
      `compensate.${idle} is for a tool's own compensate; ${tool} undoes by its own policy: put ${idle} there`,
    );
};

const checkRetry = (retry: unknown): void => {
  if (typeof retry !== 'object' || retry === null)
    throw new RangeError(`compensate.retry must be an object, not ${typeof retry}`);
  try {
    retryPolicy(retry, RETRY_PROFILES.resilient);
  } catch (error) {
    throw error instanceof RangeError ? new RangeError(`compensate.retry: ${error.message}`) : error;
  }
};

const callOf = ({ tool, input }: CompensateCall): NonNullable<Undoing['call']> => ({
  tool,
  input: input === undefined ? (facts) => facts['output'] : filled('compensate.input', input, FACTS),
});

/** Whether a tool says how what it did is undone. */
export const isUndone = (tool: AnyTool, { compensate }: ToolPolicy): boolean =>
  tool.compensate !== undefined || (compensate !== false && compensate?.tool !== undefined);

/** @throws RangeError for a tool that has both ways to undo, or an undoing that cannot be read */
export const compensationOf = (
  tool: AnyTool,
  policy: CompensatePolicy | false | undefined,
): Undoing | false | undefined => {
  const isOwn = tool.compensate !== undefined;
  if (isOwn && typeof tool.compensate !== 'function')
    throw new RangeError(
      `compensate must be a function, not ${typeof tool.compensate}; one by data goes into policy.compensate`,
    );
  const by = policy === false || policy?.tool === undefined ? undefined : { ...policy, tool: policy.tool };
  if (isOwn && (policy === false || by !== undefined))
    throw new RangeError('a tool has compensate, or policy.compensate says how it is undone: leave one of them out');
  if (policy === false) return false;
  const own = { policy: given(policy), owner: policy?.owner ?? OWNER };
  // Called as a method of the tool itself, as anyone would.
  if (isOwn) return { ...own, run: (output, context) => tool.compensate?.(output, context) };
  return by === undefined ? undefined : { ...own, call: callOf(by) };
};

/**
 * The undoing of one node, where its plan has one of its own.
 * @throws RangeError for one that cannot be read
 */
export const nodeCompensation = (
  compensate: Compensate | CompensateCall | false,
  ofTool: Undoing | false | undefined,
): Undoing | false => {
  if (compensate === false) return false;
  const { policy, owner } = ofTool === false || ofTool === undefined ? { policy: {}, owner: OWNER } : ofTool;
  if (typeof compensate === 'function') return { policy, owner, run: compensate };
  if (typeof compensate !== 'object' || compensate === null)
    throw new RangeError('compensate of a node must be a function, { tool, input? } or false');
  checkKeys('compensate of a node', compensate, ['tool', 'input']);
  checkCompensate(compensate);
  return { policy, owner, call: callOf(compensate) };
};

/** The policy of the call that undoes: patient, without a breaker, and never repeated where that could do harm. */
export const undoPolicy = (
  { policy: { timeoutMs, retry, enforcesKey = false } }: Undoing,
  ofTool: { readonly timeoutMs: number; readonly policy: ToolPolicy },
): ToolPolicy & { readonly effects: Effects } => {
  const { mode, dedupe, verify } = ofTool.policy;
  const { tool: _, input: _input, done, output, otherwise, absentOn, ...limits } = verify ?? {};
  return {
    effects: 'mutating',
    timeoutMs: timeoutMs ?? ofTool.timeoutMs,
    retry: retryPolicy(retry, RETRY_PROFILES.resilient),
    breaker: false,
    enforcesKey,
    safetyCritical: !enforcesKey,
    // What is half undone is worse than either, and nobody may be there to ask.
    needsApproval: false,
    ...given({ mode }),
    dedupe: { ...dedupe, doneTtlMs: Math.max(dedupe?.doneTtlMs ?? 0, UNDO_KEEP_MS) },
    verify: limits,
  };
};
