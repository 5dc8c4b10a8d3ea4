import { RESULT_KEY, partOf } from '../policy/result-reference.ts';

/** An input made by `fromResults` has what it was made of under this. */
const TEMPLATE: unique symbol = Symbol.for('spillway.fleet.template');
const TEXT_KEY = '$text';

interface Templated {
  readonly [TEMPLATE]: unknown;
}

type Values = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null;

/** A value inside a text: a text as it is, all else as JSON. */
const inText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

const stepsOf = (path: unknown): ReadonlyArray<string | number> => {
  if (typeof path === 'string' && path !== '') return path.split('.');
  return Array.isArray(path) ? path.map((step) => (typeof step === 'number' ? step : String(step))) : [];
};

/** In one walk: what a result holds is a value, whatever it looks like. */
const filled = (template: unknown, values: Values): unknown => {
  if (!isObject(template)) return template;
  if (Array.isArray(template)) return template.map((inner: unknown) => filled(inner, values));
  if (Object.hasOwn(template, RESULT_KEY)) {
    const id = String(template[RESULT_KEY]);
    return partOf(values[id], id, stepsOf(template['path']));
  }
  const parts = template[TEXT_KEY];
  if (Array.isArray(parts)) return parts.map((part: unknown) => inText(filled(part, values))).join('');
  return Object.fromEntries(Object.entries(template).map(([key, inner]) => [key, filled(inner, values)]));
};

/** The nodes that a template refers to. */
export const referencesOf = (template: unknown, found: Set<string> = new Set<string>()): Set<string> => {
  if (!isObject(template)) return found;
  if (Object.hasOwn(template, RESULT_KEY)) return found.add(String(template[RESULT_KEY]));
  for (const inner of Object.values(template)) referencesOf(inner, found);
  return found;
};

/**
 * An input as data: `{ "$result": "flights", "path": "items.0.id" }` in it stands for what the node `flights` gave, or
 * for a part of that; a path can be a list of its steps, too. `{ "$text": ["to ", { "$result": "city" }] }` is one
 * text. A plan with such inputs runs in this process as any plan does, and can be handed to a fleet, where a function
 * cannot.
 *
 * What comes from a user belongs into plain inputs, or into an earlier node's output: in a template it could refer.
 *
 * @param template the input, with references anywhere in it; the nodes that it names must be among the node's `needs`
 * @returns a function, as `plan().call` takes it
 *
 * @example
 * plan()
 *   .call('flights', flights, { from: 'HEL', to: 'NRT' })
 *   .call('book', book, fromResults({ flight: { $result: 'flights', path: 'id' } }), { needs: ['flights'] });
 */
export function fromResults(template: unknown): (values: Readonly<Record<string, unknown>>) => never {
  // What it makes fits the tool's input, or the tool's schema says what does not.
  return madeOf((values) => filled(template, values) as never, template);
}

/** A function that makes an input in its own words, and the same input as data. */
export const madeOf = <F extends (values: Values) => unknown>(make: F, template: unknown): F =>
  Object.assign(make, { [TEMPLATE]: template });

/** What an input was made of; itself where it is data already. `undefined` for a function of anyone else. */
export const templateOf = (input: unknown): { readonly template: unknown } | undefined => {
  if (typeof input !== 'function') return { template: input };
  return TEMPLATE in input ? { template: (input as Templated)[TEMPLATE] } : undefined;
};
