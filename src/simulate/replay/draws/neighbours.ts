import { seededRandom } from '../../../policy/random.ts';
import type { RecordedAttempt } from '../trace/attempts.ts';
import type { Recording } from '../trace/recording.ts';

/** How many attempts around an instant say how a tool was then, and how few say nothing. */
const [NEAREST, FEWEST] = [16, 8] as const;
/** Attempts that are further away say nothing of that instant. */
const NEAR_MS = 5_000;
/** Two shares differ only if they are this many standard errors apart. */
const APART = 2;

/** A number for a text, the same each time: FNV-1a. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
};

/** A number in [0, 1) that belongs to a name, whatever was drawn before it. */
export const drawFor = (name: string): number => seededRandom(hashOf(name))();

/** How a tool was around an instant, as the attempts tell that were made then. */
export interface Around {
  /** The place of the instant among all attempts: what lies near together is told by the same ones. */
  readonly place: number;
  readonly attempts: readonly RecordedAttempt[];
}

const shareOf = ({ attempts }: Around): number =>
  attempts.filter(({ end }) => end === 'success').length / attempts.length;

/** The attempts at each tool, in order, so that those around an instant can be asked how it was then. */
export class Neighbours {
  readonly #byTool: ReadonlyMap<string, readonly RecordedAttempt[]>;

  constructor({ attempts }: Pick<Recording, 'attempts'>) {
    // One whose caller went away says nothing of the tool; one that was cut by its limit had no answer by then.
    const telling = [...attempts.values()].filter(({ end, limited }) => end !== 'cut' || limited);
    this.#byTool = Map.groupBy(
      telling.toSorted((a, b) => a.startMs - b.startMs),
      ({ toolName }) => toolName,
    );
  }

  /** Attempts of other calls around an instant; `undefined` where there are too few. */
  around(toolName: string, atMs: number, exceptCallId: string): Around | undefined {
    const all = this.#byTool.get(toolName) ?? [];
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((all[middle]?.startMs ?? Infinity) < atMs) low = middle + 1;
      else high = middle;
    }
    const place = low;
    const attempts: RecordedAttempt[] = [];
    for (let [before, after] = [place - 1, place]; attempts.length < NEAREST;) {
      const [earlier, later] = [all[before], all[after]];
      const [earlierMs, laterMs] = [atMs - (earlier?.startMs ?? -Infinity), (later?.startMs ?? Infinity) - atMs];
      const next = earlierMs <= laterMs ? earlier : later;
      if (next === undefined || Math.min(earlierMs, laterMs) > NEAR_MS) break;
      if (next === earlier) before--;
      else after++;
      if (next.callId !== exceptCallId) attempts.push(next);
    }
    return attempts.length < FEWEST ? undefined : { place, attempts };
  }
}

/**
 * What an attempt does at another time than it was made, as far as its tool is known at both: what it did, but where
 * the tool fares better or worse there, as often as that makes a difference.
 * @returns what it does as, itself or another one
 */
export function shiftedTo(recorded: RecordedAttempt, here: Around, there: Around, name: string): RecordedAttempt {
  const [was, is] = [shareOf(here), shareOf(there)];
  const sizes = [here.attempts.length, there.attempts.length] as const;
  const mean = (was * sizes[0] + is * sizes[1]) / (sizes[0] + sizes[1]);
  const error = Math.sqrt(mean * (1 - mean) * (1 / sizes[0] + 1 / sizes[1]));
  if (Math.abs(is - was) <= APART * error) return recorded;
  const succeeded = recorded.end === 'success';
  const turns = succeeded ? (was - is) / was : (is - was) / (1 - was);
  if (drawFor(`${name} turns`) >= turns) return recorded;
  const others = there.attempts.filter(({ end }) => (end === 'success') !== succeeded);
  return others[Math.floor(drawFor(`${name} as`) * others.length)] ?? recorded;
}

/**
 * What an attempt does of which nothing is known but how its tool was then: one of those around it, drawn. How it was
 * is itself known from a few only, so a sample draws those first.
 */
export function drawnFrom({ place, attempts }: Around, sample: number, name: string): RecordedAttempt | undefined {
  const nth = Math.floor(drawFor(`${sample} ${name}`) * attempts.length);
  const few = `${sample} ${Math.floor(place / NEAREST)} ${nth}`;
  return attempts[Math.floor(drawFor(few) * attempts.length)];
}
