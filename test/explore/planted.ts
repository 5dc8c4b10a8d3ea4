import type { Planted } from './planted/kit.ts';
import { APPROVED } from './planted/approved.ts';
import { LEFT } from './planted/left.ts';
import { REPEATED } from './planted/repeated.ts';

/**
 * Bugs planted into plans, each with a twin without it. What the layer itself refuses cannot be planted: it verifies
 * before it undoes, and tries no alternative after an uncertain payment; so here the verification is believed too
 * early, and the plan itself pays by another way.
 */
export const PLANTED: readonly Planted[] = [...REPEATED, ...LEFT, ...APPROVED];
