import { createSpillway, tool, type AnyTool, type Spillway, type ToolResultEnvelope } from '../src/index.ts';
import { seededRandom } from '../src/policy/random.ts';
import { virtualRuntime, type VirtualRuntime } from '../src/testing/virtual-runtime.ts';

/**
 * What a sentence about a failure is worth: scripted models over 200 tasks, each with one fault. The layer,
 * the faults and the reader are the same each time; only what the reader is told differs. `node benchmarks/teaching.ts`
 * prints the table of `src/policy/README.md`.
 */

/** What a model is told of a failed call. */
export type Telling = 'generic' | 'ours' | 'ours, with show: errors' | 'raw';
export const TELLINGS: readonly Telling[] = ['generic', 'ours', 'ours, with show: errors', 'raw'];

export type Fault =
  | 'wrong path'
  | 'expired token'
  | 'no access'
  | '429'
  | '409'
  | '422 with field errors'
  | 'resting tool';
/** How often each fault is among the 200 tasks. `no access` is one that nothing the model can do will mend. */
const SHARES: Readonly<Record<Fault, number>> = {
  'wrong path': 40,
  'expired token': 30,
  'no access': 20,
  '429': 30,
  '409': 25,
  '422 with field errors': 30,
  'resting tool': 25,
};
export const FAULTS = Object.keys(SHARES) as Fault[];

const FIELDS = ['name', 'email', 'phone', 'country'] as const;
/** In every raw text, as it is in so many: none of the other tellings may have it. */
export const SECRET = 'sk-live-9f8e7d6c5b4a3210';
/** OpenAI Agents' own words for every failure. */
const GENERIC = 'An error occurred while running the tool. Please try again.';
const WAIT_FOR_MS = 30_000;
/** A reader that has not come to an end by then has failed. */
const TURNS_MAX = 30;

/** The world of one task: what is true, and what the model has done about it. */
interface Task {
  readonly fault: Fault;
  readonly badField: string;
  /**
   * In whose style the service's client words its errors: one that quotes the body, one that names the status alone,
   * and a system's.
   */
  readonly style: 0 | 1 | 2;
  readonly fixed: Set<string>;
  healthyAtMs: number;
}

const STATUS: Readonly<Record<Fault, number>> = {
  'wrong path': 404,
  'expired token': 401,
  'no access': 403,
  '429': 429,
  '409': 409,
  '422 with field errors': 422,
  'resting tool': 503,
};

/**
 * The words of each fault in three styles: axios and the like, an SDK that quotes the body, and a program that says it
 * its own way.
 */
const rawOf = ({ fault, badField, style }: Task): string => {
  const status = STATUS[fault];
  const bodies: Readonly<Record<Fault, readonly [body: string, own: string]>> = {
    'wrong path': ['{"error":"not_found"}', "ENOENT: no such file or directory, open '/srv/data/raport.txt'"],
    'expired token': ['{"error":"invalid_token","error_description":"The access token expired"}', 'jwt expired'],
    'no access': ['{"error":"insufficient_scope"}', 'permission denied for relation invoices'],
    '429': ['{"error":"rate_limited"}', 'Too many requests'],
    '409': ['{"error":"version_conflict"}', 'could not serialize: the row was changed by another transaction'],
    '422 with field errors': [
      `{"errors":[{"field":"${badField}","message":"is not valid"}]}`,
      `validation failed: ${badField}: is not valid`,
    ],
    'resting tool': ['{"error":"unavailable"}', 'upstream connect error or disconnect/reset before headers'],
  };
  const [body, own] = bodies[fault];
  const where = `(request with Authorization: Bearer ${SECRET})`;
  return (
    [`Request failed with status code ${status} ${where}`, `${status} ${body} ${where}`, `${own} ${where}`][style] ??
    own
  );
};

const isMended = ({ fault, fixed, badField, healthyAtMs }: Task, nowMs: number): boolean => {
  if (fault === 'wrong path') return fixed.has('path');
  if (fault === 'expired token') return fixed.has('login');
  if (fault === '409') return fixed.has('state');
  if (fault === '422 with field errors') return fixed.has(badField);
  return fault !== 'no access' && nowMs >= healthyAtMs;
};

/** The tool of a task: it fails as its fault does, until what is wrong is mended. */
const toolOf = (task: Task, runtime: VirtualRuntime, show: boolean): AnyTool =>
  tool({
    name: 'work',
    policy: {
      effects: 'read',
      retry: { maxAttempts: 2, initialDelayMs: 10, jitterPercent: 0 },
      breaker: { failureThreshold: 2, cooldownMs: WAIT_FOR_MS, successThreshold: 1 },
      ...(show ? { show: 'errors' as const } : {}),
    },
    execute: () => {
      if (isMended(task, runtime.now())) return 'done';
      const headers =
        task.fault === '429' ? { 'retry-after': String(Math.ceil((task.healthyAtMs - runtime.now()) / 1_000)) } : {};
      throw Object.assign(new Error(rawOf(task)), { status: STATUS[task.fault], headers });
    },
  });

/** What a reader does next. */
type Move =
  | { readonly act: 'again' | 'give up' | 'path' | 'login' | 'state' }
  | { readonly act: 'field'; readonly field: string }
  | { readonly act: 'wait'; readonly ms: number };

/**
 * The reader, who knows nothing but the sentence and which tools there are: it may make the call again, wait, look up
 * the right path, sign in, read the present state, write one field of its input anew, or give up. One and the same for
 * every telling, and it takes words in the order of what they bind it to:
 *
 * 1. a time to wait (`try again in 30 s`, `retry-after: 30`): waits so long, then calls again;
 * 2. a name of one of its own fields: writes that field anew;
 * 3. words about credentials, a path, a state, by any of their usual names or statuses: the remedy for that, once;
 * 4. words that there is no remedy of its own for (no access): gives up;
 * 5. words about load (`later`, `too many`, 429, 503, reset): waits, 5 s the first time and twice as long each time
 *    after;
 * 6. `correct it`: writes its input anew, first the path, then field by field;
 * 7. `do not try again`, said of nothing that it could mend: gives up;
 * 8. anything else: calls again at once, then after 10 s, then after 30 s, then tries the remedies one after another,
 *    then gives up.
 */
export class Reader {
  readonly #done = new Set<string>();
  #waitMs = 5_000;
  readonly #blind: Move[] = [{ act: 'again' }, { act: 'wait', ms: 10_000 }, { act: 'wait', ms: 30_000 }];

  next(text: string): Move {
    const wait = /(?:try again in|retry[- ]after:?) (\d+) ?(s|min|h)?/i.exec(text);
    if (wait !== null)
      return { act: 'wait', ms: Number(wait[1]) * ({ min: 60_000, h: 3_600_000 }[wait[2] ?? ''] ?? 1_000) };
    const field = FIELDS.find((name) => new RegExp(`\\b${name}\\b`, 'i').test(text) && !this.#done.has(name));
    if (field !== undefined) return this.#once(field);
    if (/credential|token|jwt|unauthori[sz]ed|\b401\b/i.test(text) && !this.#done.has('login'))
      return this.#once('login');
    if (/not found|no such|not_found|ENOENT|\b404\b/i.test(text) && !this.#done.has('path')) return this.#once('path');
    if (/conflict|present state|changed by another|\b409\b/i.test(text) && !this.#done.has('state'))
      return this.#once('state');
    if (/access is not allowed|permission denied|forbidden|insufficient_scope|\b403\b/i.test(text))
      return { act: 'give up' };
    if (/later|too many|rate.?limit|unavailable|overload|disconnect|resting|circuit|\b(?:429|503)\b/i.test(text))
      return this.#later();
    if (/correct it|validation|invalid|not valid|\b422\b/i.test(text))
      return this.#remedy(['path', ...FIELDS]) ?? { act: 'give up' };
    if (/do not try again/i.test(text)) return { act: 'give up' };
    return this.#blind.shift() ?? this.#remedy(['path', 'login', 'state', ...FIELDS]) ?? { act: 'give up' };
  }

  #once(what: string): Move {
    this.#done.add(what);
    return (FIELDS as readonly string[]).includes(what)
      ? { act: 'field', field: what }
      : { act: what as 'path' | 'login' | 'state' };
  }

  #remedy(list: readonly string[]): Move | undefined {
    const untried = list.find((what) => !this.#done.has(what));
    return untried === undefined ? undefined : this.#once(untried);
  }

  #later(): Move {
    const ms = this.#waitMs;
    this.#waitMs *= 2;
    return { act: 'wait', ms };
  }
}

/** What one task cost. */
export interface Cost {
  readonly solved: boolean;
  /** Times that the model was asked. */
  readonly turns: number;
  /** Calls of tools, remedies and waits included. */
  readonly calls: number;
  readonly told: readonly string[];
}

const drawTask = (fault: Fault, n: number, nowMs: number): Task => {
  const random = seededRandom(n);
  const badField = FIELDS[Math.floor(random() * FIELDS.length)] ?? 'name';
  const isTimed = fault === '429' || fault === 'resting tool';
  return {
    fault,
    badField,
    style: Math.floor(random() * 3) as 0 | 1 | 2,
    fixed: new Set(),
    healthyAtMs: isTimed ? nowMs + WAIT_FOR_MS - 5_000 * random() : 0,
  };
};

const tell = (telling: Telling, { error }: ToolResultEnvelope): string => {
  if (telling === 'generic') return GENERIC;
  return (telling === 'raw' ? error?.message : error?.modelText) ?? '';
};

const called = async (spillway: Spillway, runtime: VirtualRuntime): Promise<ToolResultEnvelope> => {
  const result = spillway.execute({ toolName: 'work', input: {} });
  await runtime.advance(100);
  return result;
};

/** One task, from its first call to its end. */
export async function costOf(fault: Fault, n: number, telling: Telling): Promise<Cost> {
  const runtime = virtualRuntime({ seed: n });
  const task = drawTask(fault, n, runtime.now());
  const spillway = createSpillway({ tools: [toolOf(task, runtime, telling === 'ours, with show: errors')], runtime });
  // Others have found the tool down before this task began: its breaker is open.
  if (fault === 'resting tool') await called(spillway, runtime);
  const reader = new Reader();
  const told: string[] = [];
  let calls = 0;
  for (let turns = 1; turns <= TURNS_MAX; turns++) {
    calls++;
    const result = await called(spillway, runtime);
    if (result.error === undefined) return { solved: true, turns, calls, told };
    const text = tell(telling, result);
    told.push(text);
    const move = reader.next(text);
    // Where nothing helps, to stop is to solve it.
    if (move.act === 'give up') return { solved: fault === 'no access', turns: turns + 1, calls, told };
    if (move.act === 'again') continue;
    turns++;
    calls++;
    if (move.act === 'wait') await runtime.advance(move.ms);
    else task.fixed.add(move.act === 'field' ? move.field : move.act);
  }
  return { solved: false, turns: TURNS_MAX, calls, told };
}

/** All tasks under one telling. */
export interface Figures {
  readonly telling: Telling;
  readonly tasks: number;
  readonly solved: number;
  readonly turns: number;
  readonly calls: number;
  readonly leaks: number;
  readonly byFault: Readonly<
    Record<string, { readonly solved: number; readonly turns: number; readonly calls: number }>
  >;
}

/** Runs the 200 tasks under one telling. */
export async function measure(telling: Telling): Promise<Figures> {
  const total = { tasks: 0, solved: 0, turns: 0, calls: 0, leaks: 0 };
  const byFault: Record<string, { solved: number; turns: number; calls: number }> = {};
  for (const fault of FAULTS) {
    const sum = { solved: 0, turns: 0, calls: 0 };
    for (let n = 1; n <= SHARES[fault]; n++) {
      const { solved, turns, calls, told } = await costOf(fault, 1_000 * FAULTS.indexOf(fault) + n, telling);
      sum.solved += Number(solved);
      sum.turns += turns;
      sum.calls += calls;
      total.tasks++;
      total.leaks += Number(told.some((text) => text.includes(SECRET)));
    }
    byFault[fault] = sum;
    total.solved += sum.solved;
    total.turns += sum.turns;
    total.calls += sum.calls;
  }
  return { telling, ...total, byFault };
}

const per = (sum: number, count: number): string => (sum / count).toFixed(1);

/** The tables of `src/policy/README.md`. */
export function tablesOf(figures: readonly Figures[]): string {
  const whole = figures.map(
    ({ telling, tasks, solved, turns, calls, leaks }) =>
      `| ${telling} | ${solved} of ${tasks} | ${per(turns, tasks)} | ${per(calls, tasks)} | ${leaks} |\n`,
  );
  const rows = FAULTS.map((fault) => {
    const count = SHARES[fault];
    const cells = figures.map(({ byFault }) => {
      const { solved = 0, turns = 0, calls = 0 } = byFault[fault] ?? {};
      return `${solved} of ${count}, ${per(turns, count)}, ${per(calls, count)}`;
    });
    return `| ${fault} | ${cells.join(' | ')} |\n`;
  });
  return [
    '| told | solved | turns a task | calls a task | tasks that told a secret |\n|---|---|---|---|---|\n',
    ...whole,
    `\n| solved, turns, calls a task | ${TELLINGS.join(' | ')} |\n|---|${'---|'.repeat(TELLINGS.length)}\n`,
    ...rows,
  ].join('');
}

if (import.meta.main) process.stdout.write(tablesOf(await Promise.all(TELLINGS.map(measure))));
