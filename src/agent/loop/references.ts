import { RESULT_KEY as KEY } from '../../policy/result-reference.ts';

/** Deeper than this, an input is refused: the same bound as everywhere else. */
const DEPTH_MAX = 64;

/** What an input says about other calls of its step. */
export interface References {
  /** The calls it needs, each once. */
  readonly needs: readonly string[];
  /** What is wrong with it: a sentence for the model. */
  readonly fault?: string;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const misformed = (value: Readonly<Record<string, unknown>>): boolean =>
  typeof value[KEY] !== 'string' ||
  (value['path'] !== undefined && typeof value['path'] !== 'string') ||
  Object.keys(value).some((key) => key !== KEY && key !== 'path');

/**
 * Finds the references in an input: `{ "$result": "<id of another call of this step>", "path"?: "a.b" }` stands for
 * that call's output, or for what `path` leads to in it: names and list places, separated by dots.
 */
export function referencesIn(input: unknown, id: string, ids: ReadonlySet<string>): References {
  const needs = new Set<string>();
  let fault: string | undefined;
  const walk = (value: unknown, depth: number): void => {
    if (!isObject(value) || fault !== undefined) return;
    if (depth > DEPTH_MAX) {
      fault = `It may be nested ${DEPTH_MAX} deep at most.`;
      return;
    }
    if (!Object.hasOwn(value, KEY)) return Object.values(value).forEach((inner) => walk(inner, depth + 1));
    const needed = value[KEY];
    if (misformed(value))
      fault =
        `A reference has the form {"${KEY}": "<id of another call of this step>", "path": "a.b"}, ` +
        'and nothing else in it; the path may be left out.';
    else if (needed === id) fault = `It refers to its own result by "${KEY}".`;
    else if (!ids.has(String(needed)))
      fault = `"${KEY}": ${JSON.stringify(String(needed).slice(0, 64))} is not the id of another call of this step.`;
    else needs.add(String(needed));
  };
  walk(input, 0);
  return { needs: fault === undefined ? [...needs] : [], ...(fault === undefined ? {} : { fault }) };
}

/** What is left when whoever needs nothing that is left is taken away, again and again. */
const peeled = (needs: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> => {
  const neededBy = reversed(needs);
  const waiting = new Map([...needs].map(([id, list]) => [id, list.length]));
  const free = [...waiting].flatMap(([id, count]) => (count === 0 ? [id] : []));
  // Grows while it is walked: each call once.
  for (const id of free) {
    waiting.delete(id);
    for (const dependent of neededBy.get(id) ?? []) {
      const left = (waiting.get(dependent) ?? 0) - 1;
      waiting.set(dependent, left);
      if (left === 0) free.push(dependent);
    }
  }
  return new Map([...waiting.keys()].map((id) => [id, (needs.get(id) ?? []).filter((need) => waiting.has(need))]));
};

const reversed = (needs: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> => {
  const back = new Map<string, string[]>([...needs.keys()].map((id) => [id, []]));
  for (const [id, list] of needs) for (const need of list) back.get(need)?.push(id);
  return back;
};

/**
 * The calls that need each other in a circle: peeled from both sides, so that those which only need such a call are not
 * among them.
 */
export const inCycle = (needs: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> =>
  new Set(peeled(reversed(peeled(needs))).keys());
