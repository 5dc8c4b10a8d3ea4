import type { Classification, ToolErrorKind } from '../contract/error-kind.ts';
import { FINAL_REPLY, PASSING_REPLY } from './text/reply.ts';
import type { Sense } from './text/sense.ts';

/** Sources: SI 1.1 and 1.2, CLAW 1.4, and 529, Anthropic's "overloaded". */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529]);
const PERMANENT: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 501]);
/**
 * Not among R-1.3's; the opposite of their neighbours: locked, too early, "enhance your calm"; version and captive
 * portal.
 */
const TRANSIENT_4XX: ReadonlySet<number> = new Set([420, 423, 425]);
const PERMANENT_5XX: ReadonlySet<number> = new Set([505, 510, 511]);

/** The class of a status that lists. */
export function classOfListedStatus(status: number): Classification | undefined {
  if (TRANSIENT.has(status)) return 'transient';
  return PERMANENT.has(status) ? 'permanent' : undefined;
}

/**
 * The class of any status from 400 to 599: of those not listed, what refuses the request is permanent, what fails to
 * answer it is not.
 */
export function classOfStatus(status: number): Classification {
  const transient = status < 500 ? TRANSIENT_4XX.has(status) : !PERMANENT_5XX.has(status);
  return classOfListedStatus(status) ?? (transient ? 'transient' : 'permanent');
}

/** The kind of an answered HTTP request: the tool ran, even if it only said no. 408 and 504 are time-outs. */
export function kindOfStatus(status: number): ToolErrorKind {
  return status === 408 || status === 504 ? 'timeout' : 'execution_error';
}

const SENSES: ReadonlyMap<number, Sense> = new Map<number, Sense>([
  [401, 'unauthorized'],
  [403, 'unauthorized'],
  [407, 'unauthorized'],
  [402, 'quota_exhausted'],
  [429, 'rate_limited'],
  [420, 'rate_limited'],
  [408, 'timed_out'],
]);

/** What an answered status says happened. A 5xx is the server's own failure, whatever its reason. */
export function senseOfStatus(status: number): Sense {
  return SENSES.get(status) ?? (status >= 500 || classOfStatus(status) === 'transient' ? 'unavailable' : 'rejected');
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'bad request',
  401: 'unauthorized',
  402: 'payment required',
  403: 'forbidden',
  404: 'not found',
  405: 'method not allowed',
  406: 'not acceptable',
  407: 'proxy auth',
  408: 'request time',
  409: 'conflict',
  410: 'gone',
  411: 'length required',
  412: 'precondition failed',
  413: 'content too large',
  415: 'unsupported media',
  422: 'unprocessable',
  423: 'locked',
  424: 'failed dependency',
  425: 'too early',
  426: 'upgrade required',
  428: 'precondition required',
  429: 'too many requests',
  431: 'request header',
  451: 'unavailable for legal',
  500: 'internal server',
  501: 'not implemented',
  502: 'bad gateway',
  503: 'service unavailable',
  504: 'gateway time',
  505: 'http version',
  507: 'insufficient storage',
  529: 'overload',
};

/** A status that a text names as one. A number after a mere "code" may be the input's: an airport's, a country's. */
const STATED = [
  /\(([45]\d\d)\)/,
  /\b(?:http(?:\/\d(?:\.\d)?)?|status(?: code)?|(?:http|error|response) code|http (?:error|status))[ :=]{1,3}([45]\d\d)\b/,
  /^(?:error: )?([45]\d\d)\b/,
  /\bcode e([45]\d\d)\b/,
  /["'](?:http_?)?(?:status|status_?code|code)["']\s{0,3}:\s{0,3}["']?([45]\d\d)\b/,
  /\b(?:returned|responded with|answered(?: with)?|response:?|error|failed:|failed with|status of)(?: an?| http| status| code| error){0,3}:? ([45]\d\d)\b(?! (?:rows|items|results|records|entries|bytes|ms)\b)/,
] as const;

/** A number and the reason that belongs to it: `404 Not Found`, `[503 Service Unavailable]`, `401 Client Error`. */
const REASONED = /\b([45]\d\d)\b[^a-z\d]{1,3}([a-z -]{4,24})/g;

/** The status that a text in lower case states, if it does. */
export function statusInText(text: string): number | undefined {
  if (PASSING_REPLY.test(text) || FINAL_REPLY.test(text)) return undefined;
  for (const pattern of STATED) {
    const digits = pattern.exec(text)?.[1];
    if (digits !== undefined) return Number(digits);
  }
  for (const [, digits = '', words = ''] of text.matchAll(REASONED)) {
    const reason = REASONS[Number(digits)];
    if (
      (reason !== undefined && words.startsWith(reason)) ||
      words.startsWith(digits.startsWith('4') ? 'client error' : 'server error')
    )
      return Number(digits);
  }
  return undefined;
}
