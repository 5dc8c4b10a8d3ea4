import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import type { TraceEvent } from '../../contract/event.ts';
import type { Progress } from '../../contract/tool.ts';
import type { TurnResult } from '../../contract/turn.ts';
import { checkKeys, given } from '../check.ts';
import { KEYS_OF, REDACTED, textRedactor } from './text.ts';

/** What is taken out of every event, beside what looks like a secret by itself. */
export interface RedactOptions {
  /** Values that never appear, also URL-encoded and in base64. 4 to 4,096 characters each, 1,024 and 1 MiB at most. */
  readonly secrets?: readonly string[];
  /**
   * Names whose values are secrets, beside `password`, `token`, `apiKey` and the like; case, `-` and `_` make no
   * difference.
   */
  readonly keys?: readonly string[];
  /**
   * Called last with every text; gives the text to show. One that it throws for, or gives no string for, is not shown
   * at all.
   */
  readonly also?: (text: string) => string;
}

/** The parts of a tool's input and output that events may show, as dotted paths: `'from'`, `'passengers.0.age'`. */
export interface Capture {
  /** Paths into the input. Default: none. */
  readonly input?: readonly string[];
  /** Paths into the output. Default: none. */
  readonly output?: readonly string[];
}

/** By the tool's name. What is not listed is in no event. */
export type CaptureOptions = Readonly<Record<string, Capture>>;

const SECRET_LENGTH_MIN = 4;
export const SECRET_LENGTH_MAX = 4096;
export const SECRETS_MAX = 1024;
/** Of all together. */
export const SECRETS_LENGTH_MAX = 1_048_576;
/** Limits on what is captured of one input or output: a trace is no archive. */
const DEPTH_MAX = 8;
const VALUES_MAX = 1000;
/** Names remembered to be secret or not. */
const NAMES_MAX = 1000;
const NAME_LENGTH_MAX = 128;

const SECRET_NAME = new RegExp(
  `secret|passw|passphrase|passcode|credential|authorization|${KEYS_OF}key|connectionstring|` +
    '(?:token|cookies?|sessionid|pwd|jwt|auth|otp)$|^(?:db|smtp|user)?pass$',
);
const normal = (name: string): string => name.toLowerCase().replaceAll(/[-_. ]/g, '');

const checkList = (
  option: string,
  list: unknown,
  holds: (text: string, place: number) => boolean,
  rule: string,
): void => {
  if (!Array.isArray(list) || !list.every((text, place) => typeof text === 'string' && holds(text, place)))
    throw new RangeError(`${option} must be a list of ${rule}`);
};

const checked = (redact: RedactOptions, capture: CaptureOptions): void => {
  checkKeys('redact', redact, ['secrets', 'keys', 'also']);
  const { secrets = [], keys = [], also } = redact;
  let left = SECRETS_LENGTH_MAX;
  // The value itself is not in the message.
  checkList(
    'redact.secrets',
    secrets,
    ({ length }, place) =>
      place < SECRETS_MAX && length >= SECRET_LENGTH_MIN && length <= SECRET_LENGTH_MAX && (left -= length) >= 0,
    `at most ${SECRETS_MAX} texts of ${SECRET_LENGTH_MIN} to ${SECRET_LENGTH_MAX} characters, ${SECRETS_LENGTH_MAX} ` +
      `in all, not ${secrets.length}; give fewer, or parts`,
  );
  checkList('redact.keys', keys, (name) => normal(name) !== '', 'names');
  if (also !== undefined && typeof also !== 'function')
    throw new RangeError(`redact.also must be a function, not ${typeof also}`);
  for (const [toolName, paths] of Object.entries(capture)) {
    if (typeof paths !== 'object' || paths === null)
      throw new RangeError(`capture.${toolName} must be { input, output }, each a list of paths`);
    checkKeys(`capture.${toolName}`, paths, ['input', 'output']);
    for (const [side, list] of Object.entries(paths))
      checkList(
        `capture.${toolName}.${side}`,
        list,
        (path) => path.split('.').every((part) => part !== ''),
        'dotted paths',
      );
  }
};

/** A tool may report anything, with getters too: only what a progress has is looked at. */
const progressOf = (report: Progress): Progress => {
  try {
    const { progress, total, message } = report;
    const parts = Object.entries({ progress, total, message });
    return Object.fromEntries(
      parts.filter(([name, part]) => typeof part === (name === 'message' ? 'string' : 'number')),
    );
  } catch {
    // What cannot be read is not shown.
    return {};
  }
};

/**
 * Makes the function that every event passes once, before anyone who watches a trace sees it. Outputs and
 * inputs are left out but for what `capture` allows; values of secret names, and what looks like a secret inside any
 * text, are replaced by `[redacted]`; a text is cut after 4,096 characters. It never throws, and gives back the same
 * event where there is nothing to hide.
 *
 * @param redact more secrets and names
 * @param capture what of inputs and outputs is shown
 * @throws RangeError for an option out of range
 *
 * @example
 * const redact = createRedactor({ secrets: ['hunter2!'] }, { flight_search: { input: ['from', 'to'] } });
 * spillway.call({ toolName: 'flight_search' }).pipe(map(redact)).subscribe((event) => log.push(event));
 */
export function createRedactor(
  redact: RedactOptions = {},
  capture: CaptureOptions = {},
): (event: TraceEvent) => TraceEvent {
  return redactorOf(redact, capture).show;
}

/** Decides what may be shown of events; also for those who make events and know what is in them. */
export interface Redactor {
  /** What `createRedactor` makes. */
  readonly show: (event: TraceEvent) => TraceEvent;
  /** Whether no random id can hold a secret: the host named no secrets and gave no `also`. */
  readonly trustsIds: boolean;
  /** A text without secrets; a name, before it is put into words. */
  readonly text: (given: string) => string;
  /** A tool's input for a person who is asked about it: cut, and without secrets. */
  readonly value: (given: unknown) => unknown;
  /** Whether an id or a name may stand in an event as it is. Where a host named keys, its field may be one of them. */
  isSafe(name: string): boolean;
}

/** `createRedactor`, with what the makers of events need besides. Throws as it does. */
export function redactorOf(redact: RedactOptions = {}, capture: CaptureOptions = {}): Redactor {
  checked(redact, capture);
  const { secrets, keys = [], also } = redact;
  const ownNames = keys.map(normal);
  const captures = new Map(Object.entries(capture));
  const clean = textRedactor(secrets);
  const names = new Map<string, boolean>();

  const text = (given: string): string => {
    const cleaned = clean(given);
    if (also === undefined) return cleaned;
    try {
      const last: unknown = also(cleaned);
      return typeof last === 'string' ? last : REDACTED;
    } catch {
      return REDACTED;
    }
  };
  const isSecret = (name: string): boolean => {
    let secret = names.get(name);
    if (secret === undefined) {
      const plain = normal(name.slice(0, 256));
      secret = SECRET_NAME.test(plain) || ownNames.some((own) => plain.includes(own));
      if (names.size < NAMES_MAX && name.length <= NAME_LENGTH_MAX) names.set(name, secret);
    }
    return secret;
  };

  /** The event's own parts: plain objects of ours. Copied only where something is replaced. */
  const walk = (value: unknown, outermost = false): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value !== 'object' || value === null) return value;
    let copy: Record<string, unknown> | undefined;
    const given = value as Record<string, unknown>;
    for (const key of Object.keys(given)) {
      const before = given[key];
      // The package's own words, and values that hold no text.
      if (
        typeof before === 'number' ||
        typeof before === 'boolean' ||
        (outermost && (key === 'type' || key === 'source'))
      )
        continue;
      // The codes of a policy are a service's words; the class of each, which a replay needs, is ours.
      const renames = key === 'classification' && before instanceof Object;
      const after = isSecret(key)
        ? REDACTED
        : renames
          ? Object.fromEntries(Object.entries(before).map(([code, its]) => [text(code), its as unknown]))
          : walk(before);
      if (after === before) continue;
      copy ??= (Array.isArray(given) ? [...(given as unknown[])] : { ...given }) as Record<string, unknown>;
      copy[key] = after;
    }
    return copy ?? value;
  };

  /** What a tool was given or gave: anything. */
  const copied = (value: unknown, left: { values: number }, depth: number): unknown => {
    if (--left.values < 0 || depth > DEPTH_MAX) return '[cut]';
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'function' || typeof value === 'symbol') return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Date) return value.toJSON();
    if (Array.isArray(value))
      return value.slice(0, Math.max(0, left.values)).map((item) => copied(item, left, depth + 1));
    const entries = Object.keys(value).slice(0, Math.max(0, left.values));
    return Object.fromEntries(
      entries.map((key) => [
        text(key),
        isSecret(key) ? REDACTED : copied((value as Record<string, unknown>)[key], left, depth + 1),
      ]),
    );
  };

  const at = (value: unknown, path: readonly string[]): unknown => {
    let found = value;
    for (const part of path) {
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, part)) return undefined;
      if (isSecret(part)) return REDACTED;
      found = (found as Record<string, unknown>)[part];
    }
    return copied(found, { values: VALUES_MAX }, 0);
  };
  /** The captured parts by their paths, or nothing. */
  const captured = (value: unknown, paths: readonly string[] = []): object | undefined => {
    const parts: Array<[string, unknown]> = [];
    for (const path of paths) {
      try {
        const part = at(value, path.split('.'));
        if (part !== undefined) parts.push([path, part]);
      } catch {
        parts.push([path, '[unreadable]']);
      }
    }
    return parts.length === 0 ? undefined : Object.fromEntries(parts);
  };

  const shownResult = ({ output, ...rest }: ToolResultEnvelope): ToolResultEnvelope => {
    const shown = output === undefined ? undefined : captured(output.content, captures.get(rest.toolName)?.output);
    return { ...(walk(rest) as ToolResultEnvelope), ...given({ output: shown && { content: shown } }) };
  };
  const shownTurn = ({ nodes, values: _, ...result }: TurnResult): TurnResult => ({
    ...(walk(result) as TurnResult),
    values: {},
    nodes: nodes.map(({ result: call, ...node }) => ({
      ...(walk(node) as typeof node),
      ...given({ result: call && shownResult(call) }),
    })),
  });
  const shown = (event: TraceEvent): TraceEvent => {
    if (event.type === 'settled') {
      const { result, ...rest } = event;
      return {
        ...(walk(rest, true) as object),
        result: event.source === 'call' ? shownResult(event.result) : shownTurn(event.result),
      } as TraceEvent;
    }
    if (event.type === 'progress') return walk({ ...event, report: progressOf(event.report) }, true) as TraceEvent;
    if (!('input' in event)) return walk(event, true) as TraceEvent;
    const { input, ...rest } = event as TraceEvent & { readonly input?: unknown; readonly toolName?: string };
    const part = captured(input, captures.get(rest.toolName ?? '')?.input);
    return { ...(walk(rest, true) as TraceEvent), ...given({ input: part }) };
  };
  /** What was asked about last: one call's events have the same names. */
  let lastSafe: string | undefined;
  return {
    show: shown,
    text,
    value: (given) => copied(given, { values: VALUES_MAX }, 0),
    trustsIds: also === undefined && (secrets ?? []).length === 0,
    isSafe: (name) => {
      if (keys.length > 0 || (name !== lastSafe && text(name) !== name)) return false;
      lastSafe = name;
      return true;
    },
  };
}
