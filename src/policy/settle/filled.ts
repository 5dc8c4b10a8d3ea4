import { ToolExecutionError } from '../../contract/tool-error.ts';
import { at, stepsOf, type Step } from './place.ts';

/** What the references of a template are filled in from: `input`, `callKey`, `output`. */
export type Facts = Readonly<Record<string, unknown>>;

/** A template whose references are read: gives what it is with the facts filled in. */
export type Fill = (facts: Facts) => unknown;

type Part = string | { readonly steps: readonly Step[]; readonly text: string };

/** Literal text and references, in order. @throws RangeError for a reference to nothing that is known */
const partsOf = (option: string, text: string, names: readonly string[]): readonly Part[] =>
  text
    .split(/(\$\$\{|\$\{[^{}]*\}|\$\{)/)
    .filter((piece) => piece !== '')
    .map((piece) => {
      if (piece === '$${') return '${';
      if (!piece.startsWith('${')) return piece;
      const place = piece.slice(2, -1);
      const steps = stepsOf(`${option}: ${piece.slice(0, 80)}`, place);
      if (!names.includes(String(steps[0])))
        throw new RangeError(
          `${option}: \${${place}} refers to none of ${names.join(', ')}; write $\${ for a plain \${`,
        );
      return { steps, text: piece };
    });

const valueOf = ({ steps, text }: Exclude<Part, string>, facts: Facts): unknown => {
  const { values, isOdd } = at(facts, steps);
  if (isOdd || values.length !== 1 || values[0] === null)
    throw new ToolExecutionError('invalid_parameters', `${text} has no value, or more than one`);
  return values[0];
};

const inText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/**
 * Reads a template: in its texts, at any depth, `${input.from}` is a part of a fact and `$${` a plain `${`. A reference
 * alone keeps the type of its value.
 *
 * @param names of the facts that there will be
 * @returns throws `invalid_parameters` where a fact has no such part
 * @throws RangeError for a reference that cannot be read, or to no fact
 */
export const filled = (option: string, template: unknown, names: readonly string[]): Fill => {
  if (typeof template === 'string') {
    const parts = partsOf(option, template, names);
    const [only] = parts;
    if (parts.length === 1 && typeof only === 'object') return (facts) => valueOf(only, facts);
    return (facts) => parts.map((part) => (typeof part === 'string' ? part : inText(valueOf(part, facts)))).join('');
  }
  if (Array.isArray(template)) {
    const items = template.map((item, index) => filled(`${option}[${index}]`, item, names));
    return (facts) => items.map((fill) => fill(facts));
  }
  if (typeof template === 'object' && template !== null) {
    const entries = Object.entries(template).map(
      ([key, item]) => [key, filled(`${option}.${key}`, item, names)] as const,
    );
    return (facts) => Object.fromEntries(entries.map(([key, fill]) => [key, fill(facts)]));
  }
  return () => template;
};
