import { resolveReferences } from '../policy/result-reference.ts';

/** An input made by `fromResults` has what it was made of under this. */
const TEMPLATE: unique symbol = Symbol.for('spillway.fleet.template');

interface Templated {
  readonly [TEMPLATE]: unknown;
}

/**
 * An input as data: `{ "$result": "flights", "path": "items.0.id" }` in it stands for what the node `flights` gave, or
 * for a part of that. A plan with such inputs runs in this process as any plan does, and can be handed to a fleet, where
 * a function cannot.
 *
 * @param template the input, with references anywhere in it; the nodes that it names must be among the node's `needs`
 * @returns a function, as `plan().call` takes it
 *
 * @example
 * plan().call('flights', flights, { to: 'NRT' }).call('book', book, fromResults({ flight: { $result: 'flights', path: 'id' } }), { needs: ['flights'] });
 */
export function fromResults(template: unknown): (values: Readonly<Record<string, unknown>>) => never {
  // What it makes fits the tool's input, or the tool's schema says what does not.
  const make = (values: Readonly<Record<string, unknown>>): never => resolveReferences(template, values) as never;
  return Object.assign(make, { [TEMPLATE]: template });
}

/** What an input was made of; itself where it is data already. `undefined` for a function of anyone else. */
export const templateOf = (input: unknown): { readonly template: unknown } | undefined => {
  if (typeof input !== 'function') return { template: input };
  return TEMPLATE in input ? { template: (input as Templated)[TEMPLATE] } : undefined;
};
