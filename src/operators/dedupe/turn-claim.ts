import { of } from 'rxjs';
import type { TurnJournal } from '../../contract/fleet/journal.ts';
import type { KeyTerms } from './key-acquisition.ts';

/** What a claim says of the turn of an engine that it is made in, and of which owner of that. */
export const claimantOf = (journal: TurnJournal | undefined): { readonly turn: string } | undefined =>
  journal === undefined ? undefined : { turn: `${journal.submission}/${journal.epoch}` };

/** The engine has given up all earlier owners of a turn that is ours; a claim says of which turn and owner it is. */
export const givenUpBy = (journal: TurnJournal | undefined): Pick<KeyTerms, 'givenUp'> =>
  journal === undefined
    ? {}
    : { givenUp: ({ request: { turn } }) => (turn === undefined ? of(false) : journal.givenUp(turn)) };

/**
 * The key of a node's call in a turn that outlives its process: no other turn of that id, of another fleet or at
 * another time, has it.
 */
export const journalKey = ({ turnId, submission }: TurnJournal, nodeId: string): string =>
  `${turnId}/${nodeId}/${submission}`;
