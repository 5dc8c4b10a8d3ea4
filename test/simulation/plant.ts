import { registerHooks } from 'node:module';
import type { InvariantId, ScenarioName } from './findings.ts';
import { KEY_PLANTS } from './idempotency/plants.ts';

interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A bug to be planted: an edit of a source file, made while it is loaded, so that what runs is the real layer and nothing on disk changes. */
export interface Plant extends Edit {
  /** Where it takes two. */
  readonly and?: Edit;
  /** Which seeds find it. Default `layer`. */
  readonly scenario?: ScenarioName;
  /** Within how many seeds the harness must find it. */
  readonly seeds: number;
  /** What finds it: any of these. */
  readonly by: readonly InvariantId[];
}

/** Every one was a real bug of some library, or of ours. */
const LAYER_PLANTS: Readonly<Record<string, Plant>> = {
  'half-open floodgate': { file: 'policy/breaker.ts', find: 'return memory.probesOut < settings.probes;', replace: 'return true;', seeds: 500, by: ['BRK-1'] },
  'simultaneous failures cancel the reset timer': {
    file: 'policy/breaker.ts',
    find: "if (permit.generation !== now.generation || outcome === 'ignored') return now;",
    replace: "if (permit.generation !== now.generation || outcome === 'ignored') return outcome === 'failure' && now.type === 'open' && atMs === now.sinceMs ? { ...now, cooldownMs: Infinity } : now;",
    seeds: 10_000,
    by: ['BRK-3', 'BRK-5'],
  },
  'an ignored error keeps its permit': { file: 'operators/circuit-breaker.ts', find: 'else permit?.ignore();', replace: 'else void 0;', seeds: 10_000, by: ['BRK-4', 'BRK-5'] },
  'a cancelled probe keeps its permit': { file: 'operators/attempts.ts', find: 'this.takePermit()?.release();', replace: 'void 0;', seeds: 5_000, by: ['BRK-4', 'BRK-5'] },
  'a timer left behind': { file: 'turn/tool-attempts.ts', find: 'this.inner?.unsubscribe();', replace: 'void 0;', seeds: 500, by: ['RSC-1', 'TRC-1', 'DL-1'] },
  'a timeout left behind': { file: 'operators/attempts.ts', find: 'this.#deadline?.cancel();', replace: 'void 0;', seeds: 500, by: ['RSC-1'] },
  'an attempt after the deadline': { file: 'policy/recovery.ts', find: 'if (isAboutTime(code) && retryDelayMs(failure) >= turnRemainingMs) {', replace: 'if (isAboutTime(code) && turnRemainingMs < 0) {', seeds: 500, by: ['DL-1'] },
  'an attempt behind a stall, after the deadline': {
    file: 'turn/trial.ts',
    find: 'if (!late && this.record.remainingMs > 0) {',
    replace: 'if (!late) {',
    and: { file: 'turn/trial.ts', find: ' || record.remainingMs <= 0) return', replace: ') return' },
    seeds: 20_000,
    by: ['DL-1'],
  },
  'a node at the deadline': { file: 'turn/turn.ts', find: 'if (runtime.now() >= this.#site.deadlineMs) return;', replace: '', seeds: 500, by: ['DL-1'] },
  'maximum plus one': { file: 'policy/retry-refusal.ts', find: 'if (attempt >= maxAttempts) return', replace: 'if (attempt > maxAttempts) return', seeds: 100, by: ['RET-1'] },
  'a permanent failure retried': { file: 'policy/retry-refusal.ts', find: "if (failure.classification === 'permanent') return 'permanent';", replace: '', seeds: 200, by: ['RET-3'] },
  'an uncertain mutation retried': { file: 'policy/retry-refusal.ts', find: "if (mayHaveTakenEffect(failure)) return 'uncertain_mutation';", replace: '', seeds: 500, by: ['RET-5'] },
  'Retry-After not respected': { file: 'policy/retry-refusal.ts', find: '(retryAfterMs > nextDelayMs ? retryAfterMs : nextDelayMs)', replace: '(retryAfterMs > nextDelayMs ? nextDelayMs : nextDelayMs)', seeds: 2_000, by: ['RET-2'] },
  'a retry that the budget does not know of': { file: 'turn/trial.ts', find: 'layer.retryBudget?.recordRetry(this.runtime.now());', replace: '', seeds: 1_000, by: ['RET-4'] },
  'a late result after a timeout': { file: 'operators/attempts.ts', find: 'return this.#live && this.#number === number && !this.#hasAnswered;', replace: 'return true;', seeds: 500, by: ['RES-1', 'TRC-1', 'RES-3', 'RSC-1'] },
  'a false timeout behind a stall': { file: 'operators/expiry.ts', find: 'if (due.length > 0) void new Batch(due, this.#runtime);', replace: 'for (const entry of due) if (!entry.done) { entry.done = true; entry.expired(); }', seeds: 500, by: ['TO-1', 'TURN-2', 'RSC-1'] },
  'a dependant run on a failed parent': { file: 'turn/turn.ts', find: 'if (lacking.length === 0) return this.#start(place, node);', replace: 'return this.#start(place, node);', seeds: 200, by: ['DAG-1', 'DAG-2'] },
  'one place too many': { file: 'turn/turn.ts', find: 'Math.min(this.#concurrency, this.#runningCount + BURST)', replace: 'Math.min(this.#concurrency + 1, this.#runningCount + BURST)', seeds: 200, by: ['DAG-3'] },
  'an outcome of an old generation counted': { file: 'policy/breaker.ts', find: "if (permit.generation !== now.generation || outcome === 'ignored') return now;", replace: "if (outcome === 'ignored') return now;", seeds: 1_000, by: ['BRK-3'] },
  'a probe of an earlier half-open period not counted': {
    file: 'policy/breaker.ts',
    find: "if (now.type === 'open') now = become(now, 'half_open', dueMs);",
    replace: "if (now.type === 'open') now = { ...become(now, 'half_open', dueMs), probesOut: 0, probeEpoch: now.probeEpoch + 1 };",
    seeds: 100_000,
    by: ['BRK-1'],
  },
  'a listener left on the caller’s signal': { file: 'turn/outside.ts', find: "signal?.removeEventListener('abort', abort);", replace: '', seeds: 500, by: ['RSC-1'] },
  'a signal that is not aborted': { file: 'operators/attempts.ts', find: 'attempt.#controller?.abort();', replace: 'void 0;', seeds: 200, by: ['RSC-1'] },
  'a good result downgraded at the deadline': { file: 'turn/turn.ts', find: 'this.#results[place] === undefined ? [{ node, place }] : []', replace: 'true ? [{ node, place }] : []', seeds: 200, by: ['TURN-2', 'RES-1'] },
};

export const PLANTS: Readonly<Record<string, Plant>> = { ...LAYER_PLANTS, ...KEY_PLANTS };

const urlOf = (file: string): string => new URL(`../../src/${file}`, import.meta.url).href;

/** From now on the modules are loaded with the bug in them. Throws unless its place is found exactly once. */
export function plantBug(name: string): void {
  const plant = PLANTS[name];
  if (plant === undefined) throw new RangeError(`there is no planted bug ${JSON.stringify(name)}; there are ${Object.keys(PLANTS).join(', ')}`);
  const waiting = new Set<Edit>(plant.and === undefined ? [plant] : [plant, plant.and]);
  registerHooks({
    load: (loaded, context, nextLoad) => {
      const result = nextLoad(loaded, context);
      const edits = [...waiting].filter(({ file }) => urlOf(file) === loaded);
      if (edits.length === 0) return result;
      let source = typeof result.source === 'string' ? result.source : new TextDecoder().decode(result.source);
      for (const edit of edits) {
        const places = source.split(edit.find).length - 1;
        if (places !== 1) throw new Error(`the planted bug "${name}" has ${places} places in ${edit.file}: write it anew for the code as it is`);
        waiting.delete(edit);
        source = source.replace(edit.find, () => edit.replace);
      }
      return { ...result, source };
    },
  });
  process.once('exit', () => {
    if (waiting.size > 0) process.stderr.write(`the planted bug "${name}" was never loaded\n`);
  });
}
