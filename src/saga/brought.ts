import type { CallingLayer } from '../call/pipe.ts';
import type { SharedBreakers } from '../layer/shared-breakers/registry.ts';
import type { ResumeOptions, ResumedTurn, resumeTurns } from './resume.ts';

/**
 * What a layer does only with what may outlive it. Whoever needs a part brings it along: plans the resuming of turns,
 * stores of several processes that and shared breakers. So the bundle of a program without them holds nothing of it.
 */
interface Parts {
  readonly resumeTurns?: typeof resumeTurns;
  readonly SharedBreakers?: typeof SharedBreakers;
}

let own: Parts = {};
/** A plan or a store may be of another copy of the package: its parts serve where this copy was brought none. */
const ANY_COPY: unique symbol = Symbol.for('spillway.brought');
const ofAnyCopy = globalThis as { [ANY_COPY]?: Parts };

/** From now on all layers of this process have these parts. */
export const bring = (parts: Parts): void => {
  own = { ...own, ...parts };
  // Where nothing may be added to the global object, each copy has its own parts alone.
  Reflect.set(globalThis, ANY_COPY, { ...parts, ...ofAnyCopy[ANY_COPY] });
};

const missing = (what: string): RangeError =>
  new RangeError(
    `${what} is not in this bundle: give createSpillway a store that came through acrossProcesses of spillway/operate`,
  );

/** @throws RangeError where nothing in this program has brought them along */
export const sharedBreakersType = (): typeof SharedBreakers => {
  const found = own.SharedBreakers ?? ofAnyCopy[ANY_COPY]?.SharedBreakers;
  if (found === undefined) throw missing('shareBreakers');
  return found;
};

/** Rejects with a RangeError where nothing in this program has brought it along. */
export const resumed = (layer: CallingLayer, options: ResumeOptions): Promise<readonly ResumedTurn[]> => {
  const resume = own.resumeTurns ?? ofAnyCopy[ANY_COPY]?.resumeTurns;
  return resume === undefined ? Promise.reject(missing('resume()')) : resume(layer, options);
};
