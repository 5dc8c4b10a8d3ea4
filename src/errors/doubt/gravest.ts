import { isOwnFault, senseOfCode } from '../code.ts';
import { STATUSES } from '../paths.ts';
import { asStatus, firstOf, isUnsent, read, severalIn } from '../structure.ts';
import type { Sense } from '../text/sense.ts';
import { isSlip } from './slip.ts';

/** How far errors within errors are looked into: they can be many, and each of them many again. */
const NESTED_MAX = 3;

/** What a lost answer is called, after which nobody knows what was done. */
const UNANSWERED: ReadonlySet<Sense | undefined> = new Set<Sense | undefined>([
  'lost',
  'timed_out',
  'canceled',
  undefined,
]);

/** What an error leaves open: nothing, since it was never sent; nothing, since it was refused; or what was done. */
const UNSENT = 0;
const REFUSED = 1;
const OPEN = 2;

const gravityOfCode = (code: unknown): number | undefined => {
  if (isUnsent(code)) return UNSENT;
  if (typeof code !== 'string' && typeof code !== 'number') return undefined;
  const own = String(code);
  return UNANSWERED.has(senseOfCode(own)) || isOwnFault(own) || isSlip(own) ? OPEN : REFUSED;
};

const gravityOf = (error: unknown, depth: number): number => {
  const status = firstOf(error, STATUSES, asStatus);
  if (status !== undefined) return status < 500 ? REFUSED : OPEN;
  const coded = gravityOfCode(read(error, 'code'));
  if (coded !== undefined || depth === NESTED_MAX) return coded ?? OPEN;
  const cause = read(error, 'cause');
  const inner = cause === undefined || cause === null ? severalIn(read(error, 'errors')) : [cause];
  return inner.length === 0 ? OPEN : Math.max(...inner.map((behind) => gravityOf(behind, depth + 1)));
};

/**
 * Of several errors at once the first that leaves the most open: one that was refused, or never sent, proves nothing
 * about the others.
 */
export function gravest(errors: unknown): unknown {
  const several = severalIn(errors).map((error) => ({ error, gravity: gravityOf(error, 0) }));
  const most = Math.max(...several.map(({ gravity }) => gravity));
  return several.find(({ gravity }) => gravity === most)?.error;
}
