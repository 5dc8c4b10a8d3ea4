/** Whether a value is what a store may answer at one place of an answer. */
type Rule = readonly [fits: (value: unknown) => boolean, what: string];
/** A list, which is gone through for each answer. */
type Members = ReadonlyArray<readonly [name: string, rule: Rule]>;

const members = (named: Readonly<Record<string, Rule>>): Members => Object.entries(named);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isTime = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const orAbsent = ([fits, what]: Rule): Rule => [(value) => value === undefined || fits(value), `${what} or absent`];

const TEXT: Rule = [isText, 'a text'];
const TIME: Rule = [isTime, 'a number of milliseconds'];
const FLAG: Rule = [(value) => typeof value === 'boolean', 'true or false'];
const OBJECT: Rule = [isObject, 'an object'];
const VERSION: Rule = [(value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number from 0'];
const STATE: Rule = [
  (value) => ['inflight', 'done', 'failed', 'cancelled'].includes(value as string),
  'inflight, done, failed or cancelled',
];

const REQUEST = members({
  sessionKey: TEXT,
  actorId: TEXT,
  tenantId: orAbsent(TEXT),
  requestId: TEXT,
  paramsDigest: TEXT,
});
const FAILURE = members({ code: TEXT, message: TEXT });
const RECORD = members({
  key: TEXT,
  tool: TEXT,
  idempotencyKey: TEXT,
  state: STATE,
  createdAtMs: TIME,
  updatedAtMs: TIME,
  expiresAtMs: TIME,
  request: OBJECT,
  payload: orAbsent(TEXT),
  error: orAbsent(OBJECT),
  execution: orAbsent(OBJECT),
  version: VERSION,
});
const REPORT = members({
  kind: TEXT,
  durability: TEXT,
  shared: FLAG,
  weak: orAbsent(FLAG),
  warnings: [(value) => Array.isArray(value) && value.every(isText), 'a list of texts'],
});

/** A value in words that carry nothing of its content, which may be secret. */
const named = (value: unknown): string => {
  if (typeof value === 'string') return 'a text';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`;
  return isObject(value) ? 'an object' : String(value);
};

const problemIn = (value: unknown, expected: Members, path: string): string | undefined => {
  if (!isObject(value)) return `${path} is ${named(value)}, not an object`;
  for (const [name, [fits, what]] of expected) {
    if (!fits(value[name])) return `${path}.${name} is ${named(value[name])}, not ${what}`;
  }
  return undefined;
};

/**
 * What is wrong with a record that a store gave, if anything: the member, what it is, and what it must be. The answer
 * holds nothing of its content.
 *
 * @param path what the record is called in the words that are given
 */
export function recordProblem(record: unknown, path = 'the record'): string | undefined {
  const problem = problemIn(record, RECORD, path);
  if (problem !== undefined) return problem;
  const { request, error, state, lockUntilMs } = record as Readonly<Record<string, unknown>>;
  // Without the end of its lease a running claim would be taken over at once.
  const [fits, what] = state === 'inflight' ? TIME : orAbsent(TIME);
  if (!fits(lockUntilMs)) return `${path}.lockUntilMs is ${named(lockUntilMs)}, not ${what}`;
  return (
    problemIn(request, REQUEST, `${path}.request`) ??
    (error === undefined ? undefined : problemIn(error, FAILURE, `${path}.error`))
  );
}

const ofReading =
  (expected: Members) =>
  (answer: unknown): string | undefined =>
    problemIn(answer, expected, 'the answer') ??
    recordProblem((answer as { readonly record?: unknown }).record, 'its record');

const readingProblem = ofReading(members({ atMs: TIME }));
const claimProblem = ofReading(members({ created: FLAG, atMs: TIME }));
const only =
  ([fits, what]: Rule) =>
  (answer: unknown): string | undefined =>
    fits(answer) ? undefined : `the answer is ${named(answer)}, not ${what}`;
const flagProblem = only(FLAG);

/** For each operation of a store that answers: what is wrong with an answer, if anything. */
export const ANSWER_PROBLEMS: Readonly<
  Record<
    'get' | 'setIfNotExists' | 'compareAndSet' | 'renew' | 'delete' | 'sweep' | 'report',
    (answer: unknown) => string | undefined
  >
> = {
  get: (answer) => (answer === undefined ? undefined : readingProblem(answer)),
  setIfNotExists: claimProblem,
  compareAndSet: (answer) => (answer === undefined ? undefined : recordProblem(answer, 'the answer')),
  renew: flagProblem,
  delete: flagProblem,
  sweep: only([(answer) => isTime(answer) && Number(answer) >= 0, 'a number from 0']),
  report: (answer) => problemIn(answer, REPORT, 'the answer'),
};
