import { registerHooks } from 'node:module';
import { edited, placesOf } from '../code-edit.ts';
import type { InvariantId, ScenarioName } from './findings.ts';
import { KEY_PLANTS } from './idempotency/plants.ts';
import { SETTLE_PLANTS } from './settle-plants.ts';
import { SIDE_PLANTS } from './side-plants.ts';

interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * A bug to be planted: an edit of a source file, made while it is loaded, so that what runs is the real layer and
 * nothing on disk changes.
 */
export interface Plant extends Edit {
  /** Where it takes two. */
  readonly and?: Edit;
  /** Which seeds find it: of one scenario, or of each its own. Default `layer`. */
  readonly scenario?: ScenarioName | 'each its own';
  /** Within how many seeds the harness must find it. */
  readonly seeds: number;
  /** What finds it: any of these. */
  readonly by: readonly InvariantId[];
}

/** Every one was a real bug of some library, or of ours. */
const LAYER_PLANTS: Readonly<Record<string, Plant>> = {
  'half-open floodgate': {
    file: 'policy/breaker/reducer.ts',
    find: 'return memory.probesOut < settings.probes + memory.extraProbes;',
    replace: 'return true;',
    seeds: 500,
    by: ['BRK-1'],
  },
  'simultaneous failures cancel the reset timer': {
    file: 'policy/breaker/reducer.ts',
    find: "if (permit.generation !== now.generation || outcome === 'ignored') return now;",
    replace:
      "if (permit.generation !== now.generation || outcome === 'ignored') return outcome === 'failure' && now.type === 'open' && atMs === now.sinceMs ? { ...now, cooldownMs: Infinity } : now;",
    seeds: 10_000,
    by: ['BRK-3', 'BRK-5'],
  },
  'an ignored error keeps its permit': {
    file: 'operators/circuit-breaker.ts',
    find: 'else permit?.ignore(error);',
    replace: 'else void 0;',
    seeds: 10_000,
    by: ['BRK-4', 'BRK-5'],
  },
  'a cancelled probe keeps its permit': {
    file: 'call/attempt/execution.ts',
    find: 'else permit?.release();',
    replace: 'else void 0;',
    seeds: 5_000,
    by: ['BRK-4', 'BRK-5'],
  },
  'a timer left behind': {
    file: 'call/attempt/retries.ts',
    find: 'return runtime.after(delayMs).pipe(',
    replace: 'return new Observable((waiting) => void runtime.after(delayMs).subscribe(() => waiting.next(0))).pipe(',
    seeds: 500,
    by: ['RSC-1', 'TRC-1', 'DL-1'],
  },
  'a timeout left behind': {
    file: 'operators/timing/expiry.ts',
    find: 'queueOf(ms, runtime).addFrom(',
    replace: 'void queueOf(ms, runtime).addFrom(',
    seeds: 500,
    by: ['RSC-1'],
  },
  'an attempt after the deadline': {
    file: 'policy/recovery/decide.ts',
    find: 'if (isAboutTime(code) && retryDelayMs(failure) >= turnRemainingMs) {',
    replace: 'if (isAboutTime(code) && turnRemainingMs < 0) {',
    seeds: 500,
    by: ['DL-1'],
  },
  'an attempt behind a stall, after the deadline': {
    file: 'call/attempt/retries.ts',
    find: "if (context.remainingMs <= 0) return failedFor(execution, failure, outOfTime(execution, 'turn_deadline'));",
    replace: '',
    and: {
      file: 'call/attempt/retries.ts',
      find: '!mayAct(context) || context.remainingMs <= 0) {',
      replace: '!mayAct(context)) {',
    },
    seeds: 20_000,
    by: ['DL-1'],
  },
  'a node at the deadline': {
    file: 'turn/node.ts',
    find: 'if (turn.layer.runtime.now() >= (turn.site.time?.endMs ?? turn.site.deadlineMs)) return NEVER;',
    replace: '',
    seeds: 500,
    by: ['DL-1'],
  },
  'maximum plus one': {
    file: 'policy/retry/refusal.ts',
    find: 'if (attempt >= maxAttempts) return',
    replace: 'if (attempt > maxAttempts) return',
    seeds: 100,
    by: ['RET-1'],
  },
  'a permanent failure retried': {
    file: 'policy/retry/refusal.ts',
    find: "if (failure.classification === 'permanent') return 'permanent';",
    replace: '',
    seeds: 200,
    by: ['RET-3'],
  },
  'an uncertain mutation retried': {
    file: 'policy/retry/refusal.ts',
    find: "if (mayHaveTakenEffect(failure)) return 'uncertain_mutation';",
    replace: '',
    seeds: 500,
    by: ['RET-5'],
  },
  'Retry-After not respected': {
    file: 'policy/retry/refusal.ts',
    find: '(retryAfterMs > nextDelayMs ? retryAfterMs : nextDelayMs)',
    replace: '(retryAfterMs > nextDelayMs ? nextDelayMs : nextDelayMs)',
    seeds: 2_000,
    by: ['RET-2'],
  },
  'a retry that the budget does not know of': {
    file: 'call/attempt/retries.ts',
    find: 'layer.retryBudget?.recordRetry(runtime.now());',
    replace: '',
    seeds: 1_000,
    by: ['RET-4'],
  },
  'a late result after a timeout': {
    file: 'call/attempt/output.ts',
    find: 'startWork(subscriber, start, own, lastOf(execution, own));',
    replace: `startWork(subscriber, () => {
      const given = start();
      given?.then?.((value) => own.isOver && execution.succeed(value), () => undefined);
      return given;
    }, own, lastOf(execution, own));`,
    seeds: 500,
    by: ['RES-1', 'TRC-1', 'RES-3', 'RSC-1'],
  },
  'a false timeout behind a stall': {
    file: 'operators/timing/expiry.ts',
    find: 'if (due.length > 0) void new Batch(due, this.#runtime);',
    replace: 'for (const entry of due) if (!entry.done) { entry.done = true; entry.expired(); }',
    seeds: 500,
    by: ['TO-1', 'TURN-2', 'RSC-1'],
  },
  'a dependant run on a failed parent': {
    file: 'turn/node.ts',
    find: 'if (lacking.length === 0) return callOf',
    replace: 'return callOf',
    seeds: 200,
    by: ['DAG-1', 'DAG-2'],
  },
  'one place too many': {
    file: 'turn/run.ts',
    find: 'mergeMap(outcomeOf, plan.options.concurrency ?? Infinity)',
    replace: 'mergeMap(outcomeOf, (plan.options.concurrency ?? Infinity) + 1)',
    seeds: 200,
    by: ['DAG-3'],
  },
  'an outcome of an old generation counted': {
    file: 'policy/breaker/reducer.ts',
    find: "if (permit.generation !== now.generation || outcome === 'ignored') return now;",
    replace: "if (outcome === 'ignored') return now;",
    seeds: 1_000,
    by: ['BRK-3'],
  },
  'a probe of an earlier half-open period not counted': {
    file: 'policy/breaker/reducer.ts',
    find: "if (now.type === 'open') now = become(now, 'half_open', dueMs);",
    replace:
      "if (now.type === 'open') now = { ...become(now, 'half_open', dueMs), probesOut: 0, probeEpoch: now.probeEpoch + 1 };",
    seeds: 100_000,
    by: ['BRK-1'],
  },
  'a listener left on the caller’s signal': {
    file: 'call/cancellation.ts',
    find: 'stopHearing?.();',
    replace: '',
    seeds: 500,
    by: ['RSC-1'],
  },
  'a signal that is not aborted': {
    file: 'operators/work/attempt-signal.ts',
    find: 'this.#controller?.abort();',
    replace: 'void 0;',
    seeds: 200,
    by: ['RSC-1'],
  },
  'an attempt that a hook blocked': {
    file: 'layer/hooks.ts',
    find: 'const reason = blockOf(answer.value);',
    replace: "const reason = hook === 'beforeToolCall' ? undefined : blockOf(answer.value);",
    seeds: 1_000,
    by: ['HOOK-1'],
  },
  'a hook that fails lets the call pass': {
    file: 'layer/hooks.ts',
    find: "if ('problem' in answer) return this.#failed(hook, call, attempt, answer);",
    replace: "if ('problem' in answer) return undefined;",
    seeds: 1_000,
    by: ['HOOK-1'],
  },
  'what a hook changed is not what runs': {
    file: 'layer/hooks.ts',
    find: '{ input: value.input }',
    replace: '{}',
    seeds: 1_000,
    by: ['HOOK-1'],
  },
  'a hook’s timer left behind': {
    file: 'operators/timing/answer-within.ts',
    find: 'expiry(timeoutMs, runtime).pipe(map(() => undefined))',
    replace: '(expiry(timeoutMs * 100, runtime).subscribe(), expiry(timeoutMs, runtime).pipe(map(() => undefined)))',
    seeds: 1_000,
    by: ['RSC-1'],
  },
  'an input checked and passed on as it was': {
    file: 'call/request.ts',
    find: 'return problem === undefined ? { input: value }',
    replace: 'return problem === undefined ? { input }',
    seeds: 1_000,
    by: ['SCH-1'],
  },
  'an input that does not fit': {
    file: 'call/request.ts',
    find: "{ input, error: invalid('The input', problem, cause) }",
    replace: '{ input }',
    seeds: 1_000,
    by: ['SCH-1'],
  },
  'a host orders a retry that the rules forbid': {
    file: 'policy/recovery/objection.ts',
    find: 'if (code !== undefined) return {',
    replace: 'if (code === undefined && false) return {',
    seeds: 1_000,
    by: ['RET-1', 'RET-3', 'RET-5'],
  },
  'a host orders an alternative for an uncertain mutation': {
    file: 'policy/recovery/objection.ts',
    find: 'if (mayBeDoneElsewhere(failure)) {',
    replace: 'if (false) {',
    seeds: 20_000,
    by: ['RET-5'],
  },
  'a host that gives up is overruled': {
    file: 'layer/error-handler.ts',
    find: 'if (objected !== undefined) return overruled(failure, objected);',
    replace:
      "if (objected !== undefined || decision.strategy === 'fail') return overruled(failure, objected ?? { because: 'it gave up' });",
    seeds: 1_000,
    by: ['RET-6'],
  },
  // As `npm run simulate` runs them: a seed of each scenario must be run twice.
  'a wait that the seed does not decide': {
    scenario: 'each its own',
    file: 'policy/retry/backoff.ts',
    find: '(jitterPercent / 100) * (2 * random() - 1)',
    replace: '(jitterPercent / 100) * (2 * Math.random() - 1)',
    seeds: 5_000,
    by: ['DET-1'],
  },
  'a good result downgraded at the deadline': {
    file: 'turn/run.ts',
    find: 'found.results[index] === undefined ? [{ node, index }] : []',
    replace: 'true ? [{ node, index }] : []',
    seeds: 200,
    by: ['TURN-2', 'RES-1'],
  },
};

export const PLANTS: Readonly<Record<string, Plant>> = {
  ...LAYER_PLANTS,
  ...KEY_PLANTS,
  ...SIDE_PLANTS,
  ...SETTLE_PLANTS,
};

const urlOf = (file: string): string => new URL(`../../src/${file}`, import.meta.url).href;

/** From now on the modules are loaded with the bug in them. Throws unless its place is found exactly once. */
export function plantBug(name: string): void {
  const plant = PLANTS[name];
  if (plant === undefined)
    throw new RangeError(
      `there is no planted bug ${JSON.stringify(name)}; there are ${Object.keys(PLANTS).join(', ')}`,
    );
  const waiting = new Set<Edit>(plant.and === undefined ? [plant] : [plant, plant.and]);
  registerHooks({
    load: (loaded, context, nextLoad) => {
      const result = nextLoad(loaded, context);
      const edits = [...waiting].filter(({ file }) => urlOf(file) === loaded);
      if (edits.length === 0) return result;
      let source = typeof result.source === 'string' ? result.source : new TextDecoder().decode(result.source);
      for (const edit of edits) {
        const places = placesOf(source, edit.find);
        if (places !== 1)
          throw new Error(
            `the planted bug "${name}" has ${places} places in ${edit.file}: write it anew for the code as it is`,
          );
        waiting.delete(edit);
        source = edited(source, edit.find, edit.replace);
      }
      return { ...result, source };
    },
  });
  process.once('exit', () => {
    if (waiting.size > 0) process.stderr.write(`the planted bug "${name}" was never loaded\n`);
  });
}
