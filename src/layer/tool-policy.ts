import type { ApprovalWhen, NeedsApproval } from '../contract/gate/approval.ts';
import type { DedupePolicy, ToolPolicy } from '../contract/policy.ts';
import { checkKeys, checkNumber, checkOneOf, number, positiveDuration } from '../policy/check.ts';
import { PLACE } from '../contract/settle/place.ts';
import { neededBy } from '../policy/gate/when.ts';
import { checkCompensate, isUndone } from './settle/compensation.ts';
import { checkVerify, isVerifiable, settleWarning } from './settle/verification.ts';
import type { GuardedTool, Surroundings } from './registry.ts';
import { shaped } from '../policy/shape/parts.ts';
import { approvalWhenShape } from '../policy/shape/request.ts';

const POLICY_KEYS = [
  'timeoutMs',
  'idleTimeoutMs',
  'retry',
  'breaker',
  'alternatives',
  'effects',
  'classification',
  'enforcesKey',
  'safetyCritical',
  'needsApproval',
  'cost',
  'verify',
  'compensate',
  'dedupe',
  'mode',
  'show',
];
const DEDUPE_KEYS = ['scope', 'volatile', 'whitespace', 'doneTtlMs', 'failedTtlMs', 'leaseMs'];

/** Runs a check, and says whose options it was about when it fails. */
export const about = <T>(toolName: string, check: () => T): T => {
  try {
    return check();
  } catch (error) {
    throw error instanceof RangeError ? new RangeError(`tool ${toolName}: ${error.message}`) : error;
  }
};

const checkDedupe = (dedupe: DedupePolicy): void => {
  checkKeys('dedupe', dedupe, DEDUPE_KEYS);
  const { scope, volatile, whitespace, doneTtlMs, failedTtlMs, leaseMs } = dedupe;
  if (scope !== undefined) checkOneOf('dedupe.scope', scope, ['session', 'global']);
  if (whitespace !== undefined) checkOneOf('dedupe.whitespace', whitespace, ['verbatim', 'collapse']);
  if (volatile !== undefined && !(Array.isArray(volatile) && volatile.every((name) => typeof name === 'string')))
    throw new RangeError('dedupe.volatile must be a list of field names');
  for (const [name, value] of Object.entries({ doneTtlMs, failedTtlMs, leaseMs }))
    if (value !== undefined) checkNumber(`dedupe.${name}`, value, positiveDuration);
};

const shown = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : typeof value);

const WHEN = 'true, false, or { path } with one of above, below, equals and unless';

const isWhen = (rule: unknown): rule is ApprovalWhen => {
  const { fits, problem } = shaped(approvalWhenShape, rule);
  const { path, ...comparisons } = fits;
  return problem === undefined && PLACE.test(path) && Object.keys(comparisons).length === 1;
};

/**
 * Whether a person has to approve a tool's calls, or what says so; `undefined` where nobody has to.
 * @throws RangeError for what is neither true, false, data about the input nor a function
 */
export const approvalRuleOf = (
  of: string,
  own: NeedsApproval | undefined,
  policy?: boolean | ApprovalWhen,
): NeedsApproval | undefined => {
  if (own !== undefined && typeof own !== 'boolean' && typeof own !== 'function' && !isWhen(own))
    throw new RangeError(`needsApproval of ${of} must be ${WHEN}, or a function, not ${shown(own)}`);
  if (policy === true || own === true) return true;
  const rule = own === false ? undefined : own;
  if (typeof policy !== 'object') return rule;
  if (rule === undefined) return policy;
  // Either of them has a person asked.
  return (input, context) => {
    if (neededBy(policy, input)) return true;
    return typeof rule === 'function' ? rule(input, context) : neededBy(rule, input);
  };
};

/** @throws RangeError for an option that is out of its range, or is none */
export const checkPolicy = (policy: ToolPolicy): void => {
  checkKeys('a tool policy', policy, POLICY_KEYS);
  if (policy.timeoutMs !== undefined) checkNumber('timeoutMs', policy.timeoutMs, positiveDuration);
  if (policy.idleTimeoutMs !== undefined) checkNumber('idleTimeoutMs', policy.idleTimeoutMs, positiveDuration);
  if (policy.cost !== undefined) checkNumber('cost', policy.cost, number(0, Number.MAX_VALUE));
  if (policy.effects !== undefined) checkOneOf('effects', policy.effects, ['read', 'mutating']);
  const { needsApproval } = policy;
  if (needsApproval !== undefined && typeof needsApproval !== 'boolean' && !isWhen(needsApproval))
    throw new RangeError(`needsApproval of a policy must be ${WHEN}, not ${shown(needsApproval)}`);
  if (policy.mode !== undefined) checkOneOf('mode', policy.mode, ['on', 'shadow', 'off']);
  if (policy.show !== undefined) checkOneOf('show', policy.show, ['errors']);
  checkDedupe(policy.dedupe ?? {});
  checkVerify(policy.verify ?? {});
  checkCompensate(policy.compensate);
  for (const [key, value] of Object.entries(policy.classification ?? {}))
    checkOneOf(`classification of ${key}`, value, ['transient', 'permanent']);
};

const timeoutWarnings = ({ tool, timeoutMs, retry: { maxAttempts, maxTotalTimeMs } }: GuardedTool): string[] => {
  if (maxAttempts <= 1 || timeoutMs < maxTotalTimeMs) return [];
  const why = `since timeoutMs (${timeoutMs}) is not below retry.maxTotalTimeMs (${maxTotalTimeMs})`;
  return [`tool ${tool.name}: a timeout is never retried, ${why}`];
};

/**
 * A tool that says nothing of itself counts as one that only reads, which is not so of every tool that says nothing
 * (R-2.5).
 */
const effectsWarnings = ({ tool }: GuardedTool, defaults: ToolPolicy): string[] => {
  const { policy = {} } = tool;
  const says = (policy.effects ?? defaults.effects) !== undefined;
  if (says || isVerifiable(tool, policy) || isUndone(tool, policy)) return [];
  const counts = 'it declares no effects and counts as read';
  const so = 'so it is run again after a failure even if it may have taken effect';
  return [`tool ${tool.name}: ${counts}, ${so}; give its policy effects: 'read' or effects: 'mutating'`];
};

/** What `warnings` says of a tool, a sentence each. */
export const warningsOf = (guarded: GuardedTool, { defaults, hasApprovals = false }: Surroundings): string[] => [
  ...(guarded.needsApproval === undefined || hasApprovals
    ? []
    : [`tool ${guarded.tool.name}: its calls need approval, and are all refused; give createSpillway approvals`]),
  ...timeoutWarnings(guarded),
  ...effectsWarnings(guarded, defaults),
  ...settleWarning(
    guarded.tool,
    guarded.verify,
    (guarded.tool.policy?.verify?.settleMs ?? defaults.verify?.settleMs) !== undefined,
    guarded.enforcesKey,
  ),
];
