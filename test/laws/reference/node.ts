import { NEVER, map, of, type Observable } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { Node, Settled } from './shapes.ts';
import { hasValue } from './turn-result.ts';

/** A node whose needs have settled, and how. */
export interface Ready {
  readonly index: number;
  readonly needs: readonly Settled[];
}

/** How a node settles. At the deadline itself no call starts, but a node can still be skipped. */
export const settling = (
  node: Node,
  { index, needs }: Ready,
  runtime: Runtime,
  deadlineMs: number,
  usesDefault: () => void,
): Observable<Settled> => {
  const isWhole = needs.every(hasValue);
  if (!isWhole && node.default === undefined) return of({ index, state: 'skipped' });
  if (runtime.now() >= deadlineMs) return NEVER;
  if (!isWhole) usesDefault();
  const good = isWhole ? 'succeeded' : 'defaulted';
  const values = needs.map((need) => (hasValue(need) ? need.outcome?.value : node.default));
  return node
    .call(values, deadlineMs)
    .pipe(map((outcome) => ({ index, outcome, state: outcome.error === undefined ? good : 'failed' })));
};
