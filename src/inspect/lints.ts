import type { ToolInForce } from '../contract/event.ts';
import type { AttemptTold, BreakerTold, CallTold, NodeTold, TraceModel, TurnTold } from './model.ts';
import { numberOf } from './model/keep.ts';
import { counted, duration } from './text.ts';

/** What a lint is about. */
export type LintName =
  | 'timeout_never_retried'
  | 'breaker_flaps'
  | 'timeout_near_p95'
  | 'waits_for_one_node'
  | 'retries_never_help'
  | 'keys_conflict'
  | 'lease_lost'
  | 'retry_budget_spent';

/** Something in a trace that is probably not meant so, in words. */
export interface Lint {
  /** Which one it is. */
  readonly name: LintName;
  /** What was found, a sentence. */
  readonly finding: string;
  /** What shows it: figures of the trace and of the policies in force. */
  readonly evidence: string;
  /** What to do about it. */
  readonly remedy: string;
  /** The tool or the breaker that it is about. */
  readonly toolName?: string;
  /** The turn that it is about. */
  readonly turnId?: string;
}

/** What is too little to say anything of. */
const ANSWERS_MIN = 20;
const RETRIES_MIN = 5;
const OPENINGS_MIN = 3;
const FLAP_WINDOW_MS = 300_000;
const NEAR_SHARE = 0.9;
const WAIT_SHARE = 0.4;
const WAIT_NODES_MIN = 3;
/** A turn that is over at once waits for nothing. */
const WAIT_MS_MIN = 100;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

interface Story {
  readonly model: TraceModel;
  readonly calls: readonly CallTold[];
  readonly byTool: ReadonlyMap<string, readonly AttemptTold[]>;
}

const policyOf = (tool: ToolInForce): { timeoutMs: number; totalMs: number; attempts: number } | undefined => {
  const timeoutMs = numberOf(tool.policy?.timeoutMs);
  const totalMs = numberOf(tool.policy?.retry?.maxTotalTimeMs);
  const attempts = numberOf(tool.policy?.retry?.maxAttempts);
  return timeoutMs === undefined || totalMs === undefined || attempts === undefined
    ? undefined
    : { timeoutMs, totalMs, attempts };
};

const neverRetried = ({ model, byTool }: Story): Lint[] =>
  [...model.tools].flatMap(([toolName, tool]): Lint[] => {
    const own = byTool.get(toolName);
    const policy = policyOf(tool);
    if (own === undefined || policy === undefined) return [];
    const { timeoutMs, totalMs, attempts } = policy;
    // What changes something is not retried after a timeout, whatever the limits are, unless its key makes that safe.
    const isUncertain = tool.effects !== 'read' && !(tool.policy.enforcesKey && !tool.policy.safetyCritical);
    if (attempts < 2 || timeoutMs < totalMs || isUncertain) return [];
    const timeouts = own.filter(({ outcome }) => outcome === 'timed_out').length;
    return [
      {
        name: 'timeout_never_retried',
        toolName,
        finding: `A timeout of ${toolName} is never retried: ${duration(timeoutMs)} >= ${duration(totalMs)} in all.`,
        evidence:
          `timeoutMs is ${timeoutMs}, retry.maxTotalTimeMs ${totalMs}; ${counted(timeouts, 'attempt')} ` +
          `of ${own.length} timed out.`,
        remedy: 'Lower timeoutMs below retry.maxTotalTimeMs, or raise the latter.',
      },
    ];
  });

/** The most openings that lie within a window of time. */
const mostWithin = (times: readonly number[], windowMs: number): number => {
  let first = 0;
  return times.reduce((most, ms, index) => {
    while (ms - (times[first] ?? ms) > windowMs) first++;
    return Math.max(most, index - first + 1);
  }, 0);
};

const flaps = ({ breakers }: TraceModel): Lint[] =>
  [...breakers.values()].flatMap(({ key, scope, changes }: BreakerTold): Lint[] => {
    // Of a breaker that several processes share each of them tells: only the first is an opening.
    const openings = changes
      .filter(({ from, to }, index) => to === 'open' && (changes[index - 1]?.to ?? from) !== 'open')
      .map(({ atMs }) => atMs);
    const most = mostWithin(openings, FLAP_WINDOW_MS);
    if (most < OPENINGS_MIN) return [];
    const reopened = changes.filter(({ from, to }) => from === 'half_open' && to === 'open').length;
    return [
      {
        name: 'breaker_flaps',
        toolName: key,
        finding: `The breaker of ${key}${scope === '' ? '' : ` (${scope})`} flaps.`,
        evidence:
          `It opened ${most} times within ${duration(FLAP_WINDOW_MS)}, ${reopened} of all its openings ` +
          `after a failed probe.`,
        remedy:
          'Raise cooldownMs, or cooldownMultiplier above 1, and successThreshold, so that it closes when the ' +
          'tool is well.',
      },
    ];
  });

const nearTimeout = ({ model, byTool }: Story): Lint[] =>
  [...byTool].flatMap(([toolName, attempts]): Lint[] => {
    const tool = model.tools.get(toolName);
    const limitMs = tool === undefined ? undefined : policyOf(tool)?.timeoutMs;
    const times = attempts
      .flatMap(({ outcome, startMs, endMs }) =>
        outcome === 'succeeded' && endMs !== undefined ? [endMs - startMs] : [],
      )
      .toSorted((a, b) => a - b);
    if (limitMs === undefined || times.length < ANSWERS_MIN) return [];
    const p95 = times[Math.ceil(times.length * 0.95) - 1] ?? 0;
    if (p95 < limitMs * NEAR_SHARE) return [];
    return [
      {
        name: 'timeout_near_p95',
        toolName,
        finding: `The p95 of ${toolName} is ${percent(p95 / limitMs)} of its timeout.`,
        evidence: `${duration(p95)} of ${duration(limitMs)}, over ${counted(times.length, 'answer')}.`,
        remedy: 'Raise timeoutMs, or make the tool quicker: a little more load, and good answers are cut off.',
      },
    ];
  });

/** How long only this node ran, while at least one other was still to come or had been. */
const aloneMs = (node: NodeTold, others: readonly NodeTold[], endMs: number): number => {
  const { startMs, settledMs = endMs } = node;
  if (startMs === undefined) return 0;
  const spans = others
    .flatMap((other) => (other.startMs === undefined ? [] : [[other.startMs, other.settledMs ?? endMs] as const]))
    .filter(([from, to]) => to > startMs && from < settledMs)
    .toSorted((a, b) => a[0] - b[0]);
  let alone = 0;
  let atMs = startMs;
  for (const [from, to] of spans) {
    alone += Math.max(0, Math.min(from, settledMs) - atMs);
    atMs = Math.max(atMs, to);
  }
  return alone + Math.max(0, settledMs - atMs);
};

const NODES_WEIGHED_MAX = 200;

const waits = (turn: TurnTold): Lint[] => {
  const { nodes, settledMs, startMs, turnId } = turn;
  if (settledMs === undefined || nodes.length < WAIT_NODES_MIN || nodes.length > NODES_WEIGHED_MAX) return [];
  const wholeMs = settledMs - startMs;
  const [worst] = nodes
    .map((node) => ({
      node,
      ms: aloneMs(
        node,
        nodes.filter((other) => other !== node),
        settledMs,
      ),
    }))
    .toSorted((a, b) => b.ms - a.ms);
  if (worst === undefined || wholeMs < WAIT_MS_MIN || worst.ms < wholeMs * WAIT_SHARE) return [];
  // For how long a person thinks no policy can do anything.
  if (worst.node.call?.isGated === true) return [];
  const { nodeId, toolName } = worst.node;
  return [
    {
      name: 'waits_for_one_node',
      turnId,
      toolName,
      finding: `The turn spent ${percent(worst.ms / wholeMs)} of its time waiting for ${nodeId} alone.`,
      evidence: `${duration(worst.ms)} of ${duration(wholeMs)}, in which no other node ran.`,
      remedy:
        `Make ${nodeId} start sooner (fewer needs), give its tool a shorter timeoutMs or an alternative, ` +
        `or let others go on without it (optional, default).`,
    },
  ];
};

const neverHelp = ({ calls }: Story): Lint[] => {
  const retried = calls.filter(
    ({ attempts, status }) =>
      // One that still waits for its next attempt may yet recover.
      (status !== 'running' || attempts.at(-1)?.decision?.strategy !== 'retry') &&
      attempts.some(({ decision }) => decision?.strategy === 'retry'),
  );
  return [...Map.groupBy(retried, ({ askedTool }) => askedTool)].flatMap(([toolName, own]): Lint[] => {
    const retries = own.reduce(
      (sum, { attempts }) => sum + attempts.filter(({ decision }) => decision?.strategy === 'retry').length,
      0,
    );
    const helped = own.some(
      ({ attempts }) =>
        attempts.some(({ decision }) => decision?.strategy === 'retry') &&
        attempts.some(({ outcome, alternative }) => outcome === 'succeeded' && !alternative),
    );
    if (helped || retries < RETRIES_MIN) return [];
    const kinds = new Set(
      own.flatMap(({ attempts }) => attempts.flatMap(({ error }) => error?.code ?? error?.kind ?? [])),
    );
    return [
      {
        name: 'retries_never_help',
        toolName,
        finding: `Retries of ${toolName} never recovered anything.`,
        evidence:
          `${counted(retries, 'retry').replace('retrys', 'retries')} in ${counted(own.length, 'call')}, ` +
          `none of which succeeded (${[...kinds].slice(0, 5).join(', ')}).`,
        remedy: 'Classify the failure as permanent (policy.classification), retry less, or name an alternative.',
      },
    ];
  });
};

const keyTrouble = ({ calls }: Story): Lint[] => {
  const having = (step: string): CallTold[] => calls.filter(({ key }) => key.some((one) => one.step === step));
  const conflicts = Map.groupBy(having('conflict'), ({ askedTool }) => askedTool);
  const lost = Map.groupBy(having('lease_lost'), ({ askedTool }) => askedTool);
  return [
    ...[...conflicts].map(([toolName, own]): Lint => ({
      name: 'keys_conflict',
      toolName,
      finding: `Idempotency keys of ${toolName} conflict: one key stood for different input.`,
      evidence: `${counted(own.length, 'call')} refused; the first is ${own[0]?.callId ?? ''}.`,
      remedy: 'Make the key of everything that tells two calls apart, or leave it out and it is computed of the input.',
    })),
    ...[...lost].map(([toolName, own]): Lint => ({
      name: 'lease_lost',
      toolName,
      finding: `Calls of ${toolName} lost their lease while they ran.`,
      evidence: `${counted(own.length, 'call')}; the first is ${own[0]?.callId ?? ''}.`,
      remedy:
        'Raise dedupe.leaseMs, or look at what stalls the process or its store: another may run the call meanwhile.',
    })),
  ];
};

const budgetSpent = ({ calls }: Story): Lint[] => {
  const spent = calls.filter(({ attempts }) => attempts.some(({ decision }) => decision?.code === 'budget_exhausted'));
  const [first] = spent;
  if (first === undefined) return [];
  return [
    {
      name: 'retry_budget_spent',
      toolName: first.askedTool,
      finding: 'The retry budget that all calls share was used up.',
      evidence:
        `${counted(spent.length, 'call')} got no retry for that; the first is ${first.callId}, of ` +
        `${first.askedTool}.`,
      remedy:
        'Look at what fails first: more budget would be more load on it. If the load is small, raise ' +
        'retryBudget.minPerSecond.',
    },
  ];
};

/**
 * What a trace shows that is probably not meant so, each with its evidence and a remedy. Nothing is said where there is
 * too little to say it of.
 *
 * @param model the trace
 * @param turn only what concerns this turn's own time, beside what concerns tools and breakers; by default all turns
 *
 * @example
 * for (const { finding, remedy } of lintTrace(emptyTrace())) log.push(`${finding} ${remedy}`);
 */
export function lintTrace(model: TraceModel, turn?: TurnTold): Lint[] {
  const calls = [...model.calls.values()];
  const attempts = calls.flatMap((call) => call.attempts.filter(({ outcome }) => outcome !== 'rejected'));
  const story: Story = { model, calls, byTool: Map.groupBy(attempts, ({ toolName }) => toolName) };
  const turns = turn === undefined ? [...model.turns.values()] : [turn];
  return [
    ...neverRetried(story),
    ...flaps(model),
    ...nearTimeout(story),
    ...turns.flatMap(waits),
    ...neverHelp(story),
    ...keyTrouble(story),
    ...budgetSpent(story),
  ];
}
