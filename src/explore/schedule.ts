import { integer, checkKeys, checkNumber, checkOneOf } from '../policy/check.ts';

/** What can strike one attempt. */
export const FAULTS = [
  'refused',
  'fails_before',
  'fails_after',
  'hangs',
  'answers_late',
  'acts_late',
  'loses_answer',
  'dies_before',
  'dies_after',
] as const;

/**
 * What strikes an attempt. `refused`: it is told for certain that it did nothing, and never will (status 422).
 * `fails_before`, `fails_after`: the connection breaks off before or after the effect. `hangs`: nothing is done, and
 * nothing answered. `answers_late`: done at once, and answered after the attempt was given up. `acts_late`: done only
 * after its caller has gone. `loses_answer`: done, and never answered. `dies_before`, `dies_after`: the process dies
 * before or after the effect.
 */
export type Fault = (typeof FAULTS)[number];

const ACTS = ['run', 'undo', 'verify', 'store'] as const;

/**
 * What an attempt does: `run` a node's tool, `undo` what it did, `verify` whether it did anything; or, with `node: ''`,
 * a question to the `store`.
 */
export type Act = (typeof ACTS)[number];

/** One attempt, and what strikes it. */
export interface Strike {
  /** The id of the node; empty for the store. */
  readonly node: string;
  /** What the attempt does. */
  readonly act: Act;
  /** Which one, counted from 1 over all tools and processes that try it. */
  readonly attempt: number;
  /** Which of its requests to the world, counted from 1. Absent where it makes none of which the world knows. */
  readonly request?: number;
  /** What strikes it. */
  readonly fault: Fault;
}

/** What goes wrong in one run of the plan, in the order in which it strikes. */
export type Schedule = readonly Strike[];

/** Faults of an attempt that does nothing which could be there or not. */
const IDLE: ReadonlySet<Fault> = new Set(['refused', 'fails_before', 'hangs', 'dies_before']);
const OF_VERIFY: ReadonlySet<Fault> = new Set(['fails_before', 'hangs', 'dies_before']);
const OF_STORE: ReadonlySet<Fault> = new Set([
  'fails_before',
  'fails_after',
  'hangs',
  'loses_answer',
  'dies_before',
  'dies_after',
]);

/** The faults that can make a difference at an attempt. @param acts whether it changes the world, or may be asked */
export const faultsAt = (act: Act, acts: boolean, faults: readonly Fault[]): readonly Fault[] =>
  faults.filter((fault) => {
    if (act === 'verify') return OF_VERIFY.has(fault);
    if (act === 'store') return OF_STORE.has(fault);
    return acts || IDLE.has(fault);
  });

export const nameOf = ({ node, act, attempt, request = 0, fault }: Strike): string =>
  `${act} ${node} ${attempt} ${request} ${fault}`;

const FAULT_WORDS: Readonly<Record<Fault, string>> = {
  refused: 'is refused',
  fails_before: 'breaks off before its effect',
  fails_after: 'breaks off after its effect',
  hangs: 'hangs',
  answers_late: 'answers too late',
  acts_late: 'acts after its caller has gone',
  loses_answer: 'loses its answer',
  dies_before: 'takes its process down before its effect',
  dies_after: 'takes its process down after its effect',
};
const PREFIXES: Readonly<Record<Exclude<Act, 'store'>, string>> = { run: '', undo: 'undoing ', verify: 'verifying ' };

const strikeWords = ({ node, act, attempt, request, fault }: Strike): string => {
  const what = act === 'store' ? `question ${attempt} to the store` : `attempt ${attempt} of ${PREFIXES[act]}${node}`;
  return `${request === undefined ? '' : `request ${request} of `}${what} ${FAULT_WORDS[fault]}`;
};

/** A schedule as a sentence's beginning. */
export const scheduleWords = (schedule: Schedule): string =>
  schedule.length === 0 ? 'nothing goes wrong' : schedule.map(strikeWords).join(', then ');

const COUNT_MAX = 1_000_000;

/**
 * Reads a schedule that a test was pasted with.
 * @throws RangeError naming the part that cannot be one
 */
export const checkSchedule = (schedule: Schedule): void => {
  for (const strike of schedule) {
    checkKeys('a strike of a schedule', strike, ['node', 'act', 'attempt', 'request', 'fault']);
    checkOneOf('act of a strike', strike.act, ACTS);
    checkOneOf('fault of a strike', strike.fault, FAULTS);
    checkNumber('attempt of a strike', strike.attempt, integer(1, COUNT_MAX));
    if (strike.request !== undefined) checkNumber('request of a strike', strike.request, integer(1, COUNT_MAX));
    if (typeof strike.node !== 'string') throw new RangeError('node of a strike must be the id of a node');
  }
};
