import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { ToolContext, TraceContext } from '../../contract/tool.ts';
import { textTemplate, type Template, type Variables } from './reference.ts';
import { invalidInput, type RestInput } from './url.ts';

/** A header of a manifest, with places for the input's values. */
export interface HeaderTemplate {
  readonly name: string;
  readonly template: Template<string>;
}

export type Headers = Record<string, string>;

/** What the connection or this provider says itself; a manifest that said it too could split a request in two. */
const OWN: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'accept-encoding',
  'traceparent',
  'tracestate',
  'baggage',
]);
/**
 * What a server that is not the manifest's may hear when a redirect leads to it, if it is the same in every call and no
 * secret.
 */
const FOR_STRANGERS = ['accept', 'accept-encoding', 'accept-language', 'user-agent'];

const VALUE_MAX = 8_192;
/** W3C Baggage, 3.3.2: what every party passes on. */
const BAGGAGE_MEMBERS_MAX = 64;
const BAGGAGE_BYTES_MAX = 8_192;
/** RFC 9110, 5.5, without what is not ASCII: nobody agrees on its encoding. */
const PRINTABLE = /^[\t\x20-\x7e]*$/;
const TOKEN = /^[!#$%&'*+.^`|~\w-]+$/;

/** Why a header cannot be a manifest's, if so. */
export function headerRule(name: string): string | undefined {
  return OWN.has(name.toLowerCase()) ? `${name} is sent by the provider itself; leave it out` : undefined;
}

/**
 * Reads a header's template.
 * @throws RangeError that names rule and remedy, never the value
 */
export function headerTemplate(name: string, text: string, variables: Variables): HeaderTemplate {
  const rule = headerRule(name);
  if (rule !== undefined) throw new RangeError(rule);
  if (!PRINTABLE.test(text)) throw new RangeError('must hold printable ASCII only, no line breaks');
  return { name: name.toLowerCase(), template: textTemplate(text, `the header ${name}`, variables) };
}

/**
 * The headers for an input. One that refers to what the input leaves out is left out.
 * @throws ToolExecutionError `invalid_parameters` for a value that no header can hold, CR and LF first of all
 */
export function filledHeaders(templates: readonly HeaderTemplate[], input: RestInput): Headers {
  const headers: Headers = {};
  for (const { name, template } of templates) {
    const value = template.fill(input);
    if (value === undefined) continue;
    const names = template.names.join(', ');
    if (!PRINTABLE.test(value))
      throw invalidInput(names, `must hold printable ASCII only, no line breaks, to stand in the header ${name}`);
    if (value.length > VALUE_MAX)
      throw invalidInput(names, `must be shorter: the header ${name} has room for ${VALUE_MAX} characters`);
    headers[name] = value;
  }
  return headers;
}

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

/** A key as a header holds it. Only what is not plain ASCII is encoded, and `%` with it, so that two keys stay two. */
const keyText = (key: string): string => (/^[\x21-\x24\x26-\x7e]*$/.test(key) ? key : encoded(key));

const baggageText = (baggage: Readonly<Record<string, string>>): string => {
  let text = '';
  for (const [name, value] of Object.entries(baggage).slice(0, BAGGAGE_MEMBERS_MAX)) {
    const member = `${name}=${encoded(String(value))}`;
    if (!TOKEN.test(name) || text.length + 1 + member.length > BAGGAGE_BYTES_MAX) continue;
    text += text === '' ? member : `,${member}`;
  }
  return text;
};

/** The vendors' part of a trace context, which says nothing without its `traceparent`. */
const vendorState = ({ tracestate }: Partial<TraceContext> = {}): Headers =>
  tracestate === undefined || !PRINTABLE.test(tracestate) ? {} : { tracestate };

/**
 * What a call brings along: its key, where the server checks one, and the trace that it is part of.
 * @throws ToolExecutionError `invalid_parameters` without a key to send
 */
export function contextHeaders(
  { callKey, traceparent, traceContext, baggage }: ToolContext,
  idempotencyHeader: string | undefined,
): Headers {
  if (idempotencyHeader !== undefined && (typeof callKey !== 'string' || callKey === ''))
    throw new ToolExecutionError(
      'invalid_parameters',
      `The call has no key for the header ${idempotencyHeader}; run it through a layer, or give context.callKey`,
    );
  const carried = baggage === undefined ? '' : baggageText(baggage);
  return {
    ...(idempotencyHeader === undefined ? {} : { [idempotencyHeader.toLowerCase()]: keyText(callKey) }),
    ...(traceparent === undefined || !PRINTABLE.test(traceparent) ? {} : { traceparent, ...vendorState(traceContext) }),
    ...(carried === '' ? {} : { baggage: carried }),
  };
}

/**
 * The names of headers that may follow a redirect to another origin: not `authorization`, not `cookie`, nothing that an
 * input, a call or the environment put in.
 */
export function namesForStrangers(templates: readonly HeaderTemplate[]): ReadonlySet<string> {
  const filled = new Set(
    templates.filter(({ template }) => template.secret || template.names.length > 0).map(({ name }) => name),
  );
  return new Set(FOR_STRANGERS.filter((name) => !filled.has(name)));
}
