import type { TurnEvent } from '../../contract/event.ts';
import type { TurnTold } from '../model.ts';
import { addEvent } from './add.ts';
import { emptyTrace } from './empty.ts';
import { emptyTurn } from './turns.ts';

/** A turn as its own stream tells it; `turn` is up to date after each `add`. */
export interface FollowedTurn {
  /** The turn; one without nodes before its first event. */
  readonly turn: TurnTold;
  /** Takes in the next event. */
  readonly add: (event: TurnEvent) => void;
}

const nothingYet = emptyTurn('', 1, 0);

/** Follows the events of one turn, all of its nodes: the plan bounds them. */
export function followTurn(): FollowedTurn {
  const model = emptyTrace({ nodes: Infinity, calls: Infinity, events: 0, turns: 1 });
  let turn = nothingYet;
  return {
    get turn() {
      return turn;
    },
    add: (event) => {
      // A call's own stream does not say of which turn it is.
      const ofTurn = event.turnId === undefined ? { ...event, turnId: turn.turnId } : event;
      addEvent(model, ofTurn);
      if (turn === nothingYet) turn = model.turns.get(ofTurn.turnId ?? '') ?? turn;
    },
  };
}
