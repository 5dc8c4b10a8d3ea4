import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Effects } from '../../contract/policy.ts';
import { senseOfCode } from '../../errors/code.ts';
import { isSlip } from '../../errors/doubt/slip.ts';
import { isHearsay } from '../../errors/text/hearsay.ts';
import type { Sense } from '../../errors/text/sense.ts';

/**
 * Statuses from 500 by which a server says that it did not do what it was asked: not implemented, unavailable, another
 * version, captive portal, overloaded. Any other 5xx can follow the effect: RFC 9110, 15.6.
 */
const DECLINED: ReadonlySet<number> = new Set([501, 503, 505, 511, 529]);

/** No request was sent. */
const NOT_SENT: ReadonlySet<Sense | undefined> = new Set<Sense>(['unreachable', 'connect_timed_out', 'untrusted']);
/** A request was sent, and its answer was lost. */
const UNANSWERED: ReadonlySet<Sense | undefined> = new Set<Sense>(['lost', 'timed_out', 'canceled']);

/**
 * A child process wrote more than was kept of it, and was ended: `execFileSync` of Node. What it did until then is
 * done.
 */
const CUT_OFF = 'ENOBUFS';

/** What of an error can prove whether its tool took effect. */
export type Testimony = Pick<ToolExecutionError, 'kind' | 'executed' | 'code' | 'status'> & {
  /** Only its words say what happened. */
  readonly hearsay: boolean;
};

/**
 * Whether an error leaves open if its tool took effect (R-2.5, "what proves nothing"): a bare throw, a shell's exit
 * code, 500, 502, 504, a lost connection, a slip of the program itself. What was refused with a status below 500, or by
 * 503 and its like, what was never sent, and what says `executed: false` was not done. So was what a tool says of
 * itself by a `ToolExecutionError` of its own.
 */
function leavesOpen({ kind, executed, code, status, hearsay }: Testimony): boolean {
  if (hearsay) return true;
  if (!executed) return false;
  if (status !== undefined) return status >= 500 && !DECLINED.has(status);
  if (code === CUT_OFF) return true;
  const sense = code === undefined ? undefined : senseOfCode(code);
  if (NOT_SENT.has(sense)) return false;
  if (code !== undefined && isSlip(code)) return true;
  return UNANSWERED.has(sense) || kind === 'transport_error' || kind === 'timeout' || kind === 'internal_error';
}

/**
 * An error as what its tool does lets it stand: of a mutating tool one that leaves open whether it took effect is
 * `uncertain`.
 *
 * @param before an attempt before it left that open already: what a later one proves, it proves of itself alone
 * @param safeMessage what a model reads of it then
 */
export function doubted(
  error: ToolExecutionError,
  effects: Effects,
  before = false,
  safeMessage: string | undefined = error.safeMessage,
): ToolExecutionError {
  if (error.uncertain || effects === 'read') return error;
  const { kind, message, code, status, retryAfterMs, classification, details, cause, stack } = error;
  if (!before && !leavesOpen({ kind, executed: error.executed, code, status, hearsay: isHearsay(error) })) return error;
  const facts = { code, status, retryAfterMs, classification, details, safeMessage, cause };
  const uncertain = new ToolExecutionError(kind, message, { ...facts, executed: true, uncertain: true });
  // Where it was thrown is for whoever looks for the fault.
  return Object.defineProperty(uncertain, 'stack', { value: stack, configurable: true, writable: true });
}
