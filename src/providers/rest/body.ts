import { valueTemplate } from './reference.ts';
import { invalidInput, scalar, type RestInput } from './url.ts';

/** A body as it is sent. */
export interface RestBody {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** What makes a request's body of an input. */
export interface BodyTemplate {
  /** The properties that it names. */
  readonly names: readonly string[];
  /** Whether it takes all that url and headers do not use. */
  readonly takesRest: boolean;
  /** @throws ToolExecutionError `invalid_parameters` for a value that cannot be written */
  fill(input: RestInput): RestBody;
}

const asJson = (value: unknown): RestBody => {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    throw invalidInput(
      'the value',
      'cannot be written as JSON: it contains itself, is nested too deeply, or holds a BigInt',
    );
  }
  return { contentType: 'application/json', bytes: Buffer.from(text ?? 'null') };
};

const asForm = (value: unknown): RestBody => {
  const pairs = new URLSearchParams();
  for (const [name, field] of Object.entries((value ?? {}) as Record<string, unknown>)) {
    const entries: readonly unknown[] = Array.isArray(field) ? field : [field];
    for (const entry of entries)
      if (entry !== undefined && entry !== null) pairs.append(name, scalar(entry, name, 'a form'));
  }
  return { contentType: 'application/x-www-form-urlencoded', bytes: Buffer.from(pairs.toString()) };
};

/**
 * Reads a body's template.
 *
 * @param template `undefined` for all properties that are not `used`
 * @param used the properties that url and headers use
 * @throws RangeError for a reference that is none, or a form that is no mapping
 */
export function bodyTemplate(template: unknown, type: 'json' | 'form', used: ReadonlySet<string>): BodyTemplate {
  const write = type === 'json' ? asJson : asForm;
  if (template === undefined)
    return {
      names: [],
      takesRest: true,
      fill: (input) => write(Object.fromEntries(Object.entries(input).filter(([name]) => !used.has(name)))),
    };
  const value = valueTemplate(template);
  const isMapping = typeof template === 'object' && template !== null && !Array.isArray(template);
  if (type === 'form' && !isMapping) throw new RangeError('must be a mapping of fields, since body_type is form');
  return { names: value.names, takesRest: false, fill: (input) => write(value.fill(input)) };
}
