import { any } from './any.ts';
import { CANCELED, LOST, RATE_LIMITED, STATE, TIMED_OUT, UNAVAILABLE, UNREACHABLE, UNTRUSTED, WEAK } from './faults.ts';
import { FORMS_OF_INPUT } from './forms.ts';
import { ABOUT_INPUT, GONE, INPUT, QUOTA, REJECTED, UNAUTHORIZED } from './refusals.ts';
import { PASSING_REPLY } from './reply.ts';
import type { Sense } from './sense.ts';

/** What a text that matches says. */
export type Row = readonly [Sense, RegExp];

/** Whose text it is: a model's provider never writes of film credits or gift certificates, a tool may. */
export type Speaker = 'llm' | 'tool';

const rowsOf = (speaker: Speaker): readonly Row[] => {
  const llm = speaker === 'llm';
  return [
    ['unavailable', any(PASSING_REPLY, /^4\.\d\.\d /)],
    ['unauthorized', UNAUTHORIZED],
    ['quota_exhausted', llm ? any(QUOTA, /credits/) : QUOTA],
    ['rejected', ABOUT_INPUT],
    ['rate_limited', RATE_LIMITED],
    ['untrusted', llm ? any(UNTRUSTED, /certificate/) : UNTRUSTED],
    ['timed_out', TIMED_OUT],
    ['canceled', CANCELED],
    ['unreachable', UNREACHABLE],
    ['lost', llm ? any(LOST, /network|\btls\b|\bssl\b|\bdns\b/) : LOST],
    ['rejected', GONE],
    ['unavailable', UNAVAILABLE],
    ['unavailable', STATE],
    ['rejected', REJECTED],
    ['rejected', FORMS_OF_INPUT],
    ['rejected', INPUT],
    ['lost', WEAK],
  ];
};

/**
 * The tables that a text is matched with, by whose text it is, in this order, which is that of `LlmErrorKind`: the
 * first that matches decides.
 */
export const ROWS: Readonly<Record<Speaker, readonly Row[]>> = { llm: rowsOf('llm'), tool: rowsOf('tool') };
