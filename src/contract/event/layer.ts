import type { BreakerStateName } from '../breaker-state.ts';
import type { EventHeader } from './header.ts';

interface LayerHeader extends EventHeader {
  /** Tells these events from those of calls and turns. */
  readonly source: 'layer';
}

/** What concerns no single call. */
export type LayerEvent = LayerHeader &
  (
    | {
        /** When a breaker's state has changed, after the state stands. */
        readonly type: 'breaker_changed';
        /** The name of the breaker: its tool's, or what `breakerKey` made of it. */
        readonly toolName: string;
        /** The state it left. */
        readonly from: BreakerStateName;
        /** The state it is in. */
        readonly to: BreakerStateName;
        /** The tenant; empty without one. */
        readonly scope: string;
        /** `Circuit breaker opened for <tool>`, or what else became of it. */
        readonly message: string;
      }
    | {
        /** When a breaker was forgotten to make room for another (`maxBreakers`). */
        readonly type: 'breaker_evicted';
        /** The name of the breaker. */
        readonly toolName: string;
        /** The tenant; empty without one. */
        readonly scope: string;
      }
    | {
        /** When the store stopped or started to answer, is full, or keeps less than it should. */
        readonly type: 'store_changed';
        /** `weak`: its settings lose what it acknowledged. */
        readonly state: 'lost' | 'back' | 'full' | 'weak';
        /** The same as a sentence, with the reason. */
        readonly message: string;
      }
  );
