import type { Classification } from '../contract/error-kind.ts';
import { ToolExecutionError, type ToolExecutionErrorOptions } from '../contract/tool-error.ts';
import { isOwnFault, senseOfCode, senseOfCodeInText, senseOfRpc } from './code.ts';
import { senseOfName } from './text/class-names.ts';
import { gravest } from './doubt/gravest.ts';
import { isSlip } from './doubt/slip.ts';
import { asHearsay } from './text/hearsay.ts';
import { TOOL_MEANINGS, classOfSense, type Meaning, type Sense } from './text/sense.ts';
import { classOfStatus, kindOfStatus, senseOfStatus, statusInText } from './status.ts';
import { isUnsent, readStructure, type ErrorStructure } from './structure.ts';
import { reasonOfRefusal, senseOfText, senseOfWords } from './text/message.ts';
import type { Speaker } from './text/words.ts';

/** A thrown value, read once: what its fields say, and what happened. */
export interface Reading {
  readonly structure: ErrorStructure;
  /** The status in its fields, or stated in its text. */
  readonly status: number | undefined;
  /** The code that decided, else the outermost one. */
  readonly code: string | undefined;
  /** `undefined` where nothing says what happened. */
  readonly sense: Sense | undefined;
  /** Whether only words say so: then a field that says whether to ask again says more. */
  readonly worded?: boolean;
  /** A field says what became of the request, and not only that whoever did it failed. */
  readonly isProof?: boolean;
}

/** Codes and names that say more than the status they come with. */
const MORE_THAN_A_STATUS: ReadonlySet<Sense> = new Set<Sense>(['unauthorized', 'quota_exhausted', 'rate_limited']);

/**
 * OpenAI sends an exhausted quota as a 429, Google a wrong key as a 400, AWS throttling and a time-out as a 400. A 5xx
 * is the server's own failure.
 */
const beats = (coded: Sense, status: number): boolean =>
  (status < 500 && MORE_THAN_A_STATUS.has(coded) && (coded !== 'rate_limited' || status === 400 || status === 429)) ||
  (coded === 'timed_out' && status === 400);

/** An abort behind an error is often how a time-out was made: the error in front of it is asked first. */
const hidden = (sense: Sense, depth: number): boolean => sense === 'canceled' && depth > 0;

interface KnownCode {
  readonly code: string;
  readonly sense: Sense;
  readonly depth: number;
  /** It is the name of the error alone: no field has it. */
  readonly isName: boolean;
}

const knownCode = ({ links }: ErrorStructure): KnownCode | undefined => {
  for (const [depth, { codes, name }] of links.entries()) {
    for (const code of name === undefined ? codes : [...codes, name]) {
      const sense = senseOfCode(code);
      if (sense !== undefined && !hidden(sense, depth)) return { code, sense, depth, isName: !codes.includes(code) };
    }
  }
  return undefined;
};

/** A connection's loss is what a wrapper's name says; any other name in the chain says more. */
const senseOfNames = ({ links }: ErrorStructure): Sense | undefined => {
  const senses = links.flatMap(({ names }, depth) =>
    names.map(senseOfName).filter((sense) => sense !== undefined && !hidden(sense, depth)),
  );
  return senses.find((sense) => sense !== 'lost') ?? senses[0];
};

/** JavaScript's own error names, which say nothing of what failed: a `SyntaxError` may be an answer cut short. */
const MUTE: ReadonlySet<string> = new Set([
  'Error',
  'TypeError',
  'SyntaxError',
  'RangeError',
  'ReferenceError',
  'EvalError',
  'URIError',
  'AggregateError',
  'DOMException',
  'Object',
  'MongoServerError',
  'ERR_BAD_RESPONSE',
]);

/** Reads a code or name that no table has by the words it is made of. */
const senseOfUnlisted = ({ links }: ErrorStructure, speaker: Speaker): Sense | undefined => {
  for (const [depth, { codes, names }] of links.entries()) {
    for (const word of [...codes, ...names]) {
      const sense = MUTE.has(word) ? undefined : senseOfWords(word, speaker);
      if (sense !== undefined && !hidden(sense, depth)) return sense;
    }
  }
  return undefined;
};

const canceledBehind = ({ links }: ErrorStructure): boolean =>
  links.some(
    ({ codes, names }) =>
      codes.some((code) => senseOfCode(code) === 'canceled') || names.some((name) => senseOfName(name) === 'canceled'),
  );

const withStatus = (
  structure: ErrorStructure,
  status: number,
  code: string | undefined,
  coded: Sense | undefined,
): Reading => {
  const sense = senseOfStatus(status);
  if (coded !== undefined && beats(coded, status)) return { structure, status, code, sense: coded };
  // A 400 says that the request was refused, not why; the reasons asked for here change nothing about asking again.
  return { structure, status, code, sense: status === 400 ? (reasonOfRefusal(structure.texts) ?? sense) : sense };
};

/** What whoever wrote a tool throws, and not what a client of theirs does. */
const BARE: ReadonlySet<string> = new Set(['Error', 'AggregateError', 'Object']);

/**
 * Whether a bare error stands around the one that says what happened. That was then one step of a tool, which may have
 * done its work before: `new Error('paid, but could not send the receipt', { cause })`.
 */
const isWrapped = ({ links }: ErrorStructure, depth: number): boolean =>
  links.slice(0, depth).some(({ codes, names }) => codes.length === 0 && names.every((name) => BARE.has(name)));

const stated = (structure: ErrorStructure): number | undefined => {
  for (const text of structure.texts) {
    const status = statusInText(text);
    if (status !== undefined) return status;
  }
  return undefined;
};

/** Structure first: status, code, name. Text only where no structure said anything. Never throws. */
export function readError(thrown: unknown, wallNow: () => number, speaker: Speaker): Reading {
  const structure = readStructure(thrown, wallNow, gravest);
  const found = knownCode(structure);
  const { code: known, sense: coded, depth: codedDepth = Infinity } = found ?? {};
  const decisive = coded !== undefined && MORE_THAN_A_STATUS.has(coded);
  const code = decisive ? known : (structure.code ?? known);
  // A code in front of a status is the outer error's own word, as a status in front of a code is.
  if (structure.status !== undefined && structure.statusDepth <= codedDepth)
    return {
      ...withStatus(structure, structure.status, code, coded),
      isProof: !isWrapped(structure, structure.statusDepth),
    };
  const listed = (structure.rpc === undefined ? undefined : senseOfRpc(structure.rpc)) ?? coded;
  // The name of an error alone is no proof: a tool that has done its work can throw one of any name.
  const isRefusal = !isOwnFault(structure.rpc ?? known) && (structure.rpc !== undefined || found?.isName !== true);
  if (listed !== undefined) {
    // Beside a code of JSON-RPC's, or in a body, a server tells of a step of its own: it has been asked.
    const isOwn = known === structure.code || !(isSlip(structure.code ?? '') || isUnsent(known));
    const isProof = isRefusal && isOwn && !isWrapped(structure, codedDepth === Infinity ? 0 : codedDepth);
    return { structure, status: undefined, code, sense: listed, isProof };
  }
  const sense = senseOfNames(structure) ?? senseOfUnlisted(structure, speaker);
  // What a code's words mean is said as surely as in a sentence: the code may be that of a receipt, after the payment.
  if (sense !== undefined) return { structure, status: undefined, code, sense };
  const status = stated(structure);
  // A text that states a 429 can go on to say that the quota is used up; then its status would say the opposite.
  if (status === 429 && reasonOfRefusal(structure.texts) === 'quota_exhausted')
    return { structure, status: undefined, code, sense: 'quota_exhausted' };
  if (status !== undefined) return withStatus(structure, status, code, undefined);
  const said = senseOfCodeInText(structure.message) ?? senseOfText(structure.texts, speaker);
  return {
    structure,
    status: undefined,
    code,
    sense: said ?? (canceledBehind(structure) ? 'canceled' : undefined),
    worded: said !== undefined,
  };
}

/** The class of what was read, where it says one. */
export function classOfReading({ status, sense, structure, worded }: Reading): Classification | undefined {
  if (worded === true && structure.retriable !== undefined) return structure.retriable ? 'transient' : 'permanent';
  if (sense !== undefined && (status === undefined || MORE_THAN_A_STATUS.has(sense))) return classOfSense(sense);
  if (status !== undefined) return classOfStatus(status);
  return structure.retriable === undefined ? undefined : structure.retriable ? 'transient' : 'permanent';
}

const meaningOf = (reading: Reading, unknown: Meaning): Meaning => {
  const { status, sense } = reading;
  if (status === undefined || (status === 400 && sense === 'timed_out'))
    return sense === undefined ? unknown : TOOL_MEANINGS[sense];
  const kind = kindOfStatus(status);
  return { kind, options: { uncertain: kind === 'timeout' } };
};

/**
 * The typed error of what was read.
 *
 * @param unknown what it is when nothing says what happened
 */
export function toTyped(reading: Reading, thrown: unknown, unknown: Meaning): ToolExecutionError {
  const { structure, status, code, sense } = reading;
  const { kind, options } = meaningOf(reading, unknown);
  const merged: ToolExecutionErrorOptions = {
    code,
    status,
    retryAfterMs: structure.retryAfterMs,
    cause: thrown,
    // What happened decides the class only where the kind has none of its own.
    classification: status === undefined && sense !== undefined ? undefined : classOfReading(reading),
    worded: reading.worded === true && structure.retriable === undefined,
    ...options,
    ...(reading.worded === true && structure.retriable !== undefined
      ? { classification: classOfReading(reading) }
      : {}),
  };
  const error = new ToolExecutionError(kind, structure.message, merged);
  return reading.isProof === true ? error : asHearsay(error);
}
