import type { ToolPolicy } from '../../contract/policy.ts';
import type { VerifyLookup, VerifyPolicy } from '../../contract/settle/verify.ts';
import type { AnyTool } from '../../contract/tool.ts';
import { checkKeys, checkNumber, checkOneOf, duration, given, integer, positiveDuration } from '../../policy/check.ts';
import { lookupOf, type ReadLookup } from '../../policy/settle/finding.ts';

/** How it is found out whether a tool's uncertain call took effect, with every part decided. */
export interface Verification {
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly settleMs: number;
  /** Somebody has said how late an effect can come; else that it is not there proves nothing. */
  readonly isSettleKnown: boolean;
  readonly stopsOnUnsubscribe: boolean;
  /** By data: another tool looks. Absent where the tool's own `verify` does. */
  readonly lookup?: ReadLookup;
}

const DEFAULTS = { timeoutMs: 5_000, maxAttempts: 3, delayMs: 500, settleMs: 1_000, stopsOnUnsubscribe: false };
const OWN = Object.keys(DEFAULTS);
const LOOKUP = ['tool', 'input', 'done', 'output', 'otherwise', 'absentOn'];
const ATTEMPTS_MAX = 100;

/** @throws RangeError for a part that is out of range or cannot be read */
export const checkVerify = (verify: VerifyPolicy): void => {
  checkKeys('verify', verify, [...OWN, ...LOOKUP]);
  const { timeoutMs, maxAttempts, delayMs, settleMs, stopsOnUnsubscribe, tool, done, otherwise, absentOn } = verify;
  if (timeoutMs !== undefined) checkNumber('verify.timeoutMs', timeoutMs, positiveDuration);
  if (maxAttempts !== undefined) checkNumber('verify.maxAttempts', maxAttempts, integer(1, ATTEMPTS_MAX));
  if (delayMs !== undefined) checkNumber('verify.delayMs', delayMs, duration);
  if (settleMs !== undefined) checkNumber('verify.settleMs', settleMs, duration);
  if (stopsOnUnsubscribe !== undefined && typeof stopsOnUnsubscribe !== 'boolean')
    throw new RangeError(`verify.stopsOnUnsubscribe must be true or false, not ${String(stopsOnUnsubscribe)}`);
  if (otherwise !== undefined) checkOneOf('verify.otherwise', otherwise, ['not_done', 'unknown']);
  if (absentOn !== undefined && !(Array.isArray(absentOn) && absentOn.every(Number.isInteger)))
    throw new RangeError('verify.absentOn must be a list of statuses, such as [404]');
  const isLookup = LOOKUP.some((name) => name in verify);
  if (isLookup && (typeof tool !== 'string' || tool === ''))
    throw new RangeError('verify.tool must name the tool to look with');
  if (isLookup && (typeof done !== 'object' || done === null || typeof done.path !== 'string'))
    throw new RangeError('verify.done must be { path, equals? }: where in the answer what has to stand');
};

const isLookup = (verify: VerifyPolicy): verify is VerifyPolicy & VerifyLookup => verify.tool !== undefined;

/** Whether a tool can say of itself, or has it said, what became of its calls. */
export const isVerifiable = (tool: AnyTool, { verify }: ToolPolicy): boolean =>
  tool.verify !== undefined || verify?.tool !== undefined;

/**
 * @param own of the tool's own policy
 * @param shared of the layer's
 * @throws RangeError for a tool that has both ways to verify
 */
export const verificationOf = (
  tool: AnyTool,
  own: VerifyPolicy | undefined,
  shared: VerifyPolicy | undefined,
): Verification | undefined => {
  const verify: VerifyPolicy = { ...given(shared), ...given(own) };
  if (tool.verify !== undefined && typeof tool.verify !== 'function')
    throw new RangeError(`verify must be a function, not ${typeof tool.verify}; one by data goes into policy.verify`);
  if (tool.verify !== undefined && verify.tool !== undefined)
    throw new RangeError('a tool has verify, or policy.verify names another tool to look with: leave one of them out');
  const { timeoutMs, maxAttempts, delayMs, settleMs, stopsOnUnsubscribe } = { ...DEFAULTS, ...verify };
  const isSettleKnown = verify.settleMs !== undefined;
  const limits = { timeoutMs, maxAttempts, delayMs, settleMs, isSettleKnown, stopsOnUnsubscribe };
  if (tool.verify !== undefined) return limits;
  return isLookup(verify) ? { ...limits, lookup: lookupOf(verify) } : undefined;
};

/** What is told of a verification whose author has not said how late an effect can come. */
export const settleWarning = ({ name }: AnyTool, verify: Verification | undefined, enforcesKey: boolean): string[] =>
  verify === undefined || verify.isSettleKnown || enforcesKey
    ? []
    : [
        `tool ${name}: its verify can say that a call has taken effect, but not that it has not, ` +
          'since nobody has said how late an effect can come; ' +
          "say it with verify: { settleMs }, or, where its resource checks the call's key, enforcesKey: true",
      ];
