import type { Sagas } from '../contract/settle/compensate.ts';
import type { Layer } from '../layer/services.ts';
import type { resumeTurns } from '../saga/resume.ts';
import type { Saga } from '../saga/saga.ts';
import type { compensation, reasonOf, settledSaga } from './conclusion.ts';

/** What a layer and its turns need of sagas. Types alone: a program that undoes nothing does not load what undoes. */
export interface SagaParts extends Sagas {
  readonly Saga: typeof Saga;
  readonly compensation: typeof compensation;
  readonly reasonOf: typeof reasonOf;
  readonly resumeTurns: typeof resumeTurns;
  readonly settledSaga: typeof settledSaga;
}

/** @throws RangeError for a layer without sagas */
export const sagaParts = ({ sagas }: Layer): SagaParts => {
  if (sagas === undefined)
    throw new RangeError('this layer undoes no turns; give createSpillway({ sagas }), those of spillway/sagas');
  // `spillway/sagas` makes the one value of the type, of these.
  return sagas as SagaParts;
};
