/**
 * What undoes turns of plans with `onFailure: 'compensate'`: `spillway/sagas`. It is given to `createSpillway`, and
 * keeps what may have to be undone in its store.
 */
import type { Sagas } from './contract/settle/compensate.ts';
import { resumeTurns } from './saga/resume.ts';
import { Saga } from './saga/saga.ts';
import { compensation, reasonOf, settledSaga } from './turn/conclusion.ts';
import type { SagaParts } from './turn/saga-parts.ts';

export type { Sagas } from './contract/settle/compensate.ts';

const parts: SagaParts = { undoes: 'turns', Saga, compensation, reasonOf, resumeTurns, settledSaga };

/**
 * Undoes what turns with `onFailure: 'compensate'` did that failed, and those of processes that died.
 *
 * @example
 * const spillway = createSpillway({ tools, store, sagas });
 * await spillway.resume();
 */
export const sagas: Sagas = parts;
