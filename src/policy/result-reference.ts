/** The member by which an input refers to the output of another call: `{ "$result": "flights", "path": "0.id" }`. */
export const RESULT_KEY = '$result';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** A path that an output does not have. */
export class PathError extends Error {
  override readonly name: string = 'PathError';
}

/** @throws PathError for a path that an output does not have */
export const partOf = (output: unknown, id: string, path: ReadonlyArray<string | number>): unknown => {
  let at = output;
  for (const step of path) {
    if (!isObject(at) || !Object.hasOwn(at, step))
      throw new PathError(`The result of ${id} has nothing at path ${JSON.stringify(path.join('.').slice(0, 128))}.`);
    at = at[step];
  }
  return at;
};

/**
 * An input with its references replaced by what they stand for.
 * @throws PathError for a path that an output does not have
 */
export function resolveReferences(input: unknown, outputs: Readonly<Record<string, unknown>>): unknown {
  if (!isObject(input)) return input;
  if (Array.isArray(input)) return input.map((inner: unknown) => resolveReferences(inner, outputs));
  if (!Object.hasOwn(input, RESULT_KEY))
    return Object.fromEntries(Object.entries(input).map(([key, inner]) => [key, resolveReferences(inner, outputs)]));
  const id = String(input[RESULT_KEY]);
  const path = input['path'];
  return typeof path === 'string' && path !== '' ? partOf(outputs[id], id, path.split('.')) : outputs[id];
}
