import type { BreakerOptions } from '../../../contract/policy.ts';
import type { Classification } from '../../../contract/error-kind.ts';
import { ToolExecutionError } from '../../../contract/tool-error.ts';
import { createRegistry, type GuardedTool } from '../../../layer/registry.ts';
import { breakerOutcome } from '../../../policy/breaker/outcome.ts';
import {
  decideBreaker,
  initialBreaker,
  type BreakerMemory,
  type BreakerOutcome,
  type Permit,
} from '../../../policy/breaker/reducer.ts';
import { breakerSettings, type BreakerSettings } from '../../../policy/breaker/settings.ts';
import { classify } from '../../../policy/recovery/classify.ts';
import { WITHOUT_ALTERNATIVE, isAboutTime } from '../../../policy/recovery/decide.ts';
import { doubted } from '../../../policy/recovery/proof.ts';
import { backoffDelayMs } from '../../../policy/retry/backoff.ts';
import { createRetryBudget, type RetryBudget } from '../../../policy/retry/budget.ts';
import { mayBeDoneElsewhere, retryDelayMs, retryRefusal } from '../../../policy/retry/refusal.ts';
import { streamOf } from '../chance.ts';
import type { Task } from '../../time.ts';
import { Attempt } from './attempt.ts';
import { StormDeadlines } from './deadlines.ts';
import { actsAgain, budgetFor, defaultsFor, policyFor, type Ended, type Engine, type EngineParts } from '../engine.ts';
import { PlanRun } from './plan-run.ts';
import type { Server } from '../server.ts';

/** A breaker without the streams around it. */
class PureBreaker {
  readonly settings: BreakerSettings;
  memory: BreakerMemory;
  constructor(options: BreakerOptions) {
    this.settings = breakerSettings(options);
    this.memory = initialBreaker(this.settings);
  }
}

/** A tool of a fleet: its policy, its breaker, and the server behind it. */
interface FleetTool {
  readonly name: string;
  readonly guarded: GuardedTool;
  readonly breaker: PureBreaker | undefined;
  readonly deadlines: StormDeadlines;
  readonly server: Server;
  readonly acts: boolean;
  /** What it makes of an error, after a certain past and after a doubtful one. */
  readonly readings: { readonly certain: Readings; readonly doubtful: Readings };
}

/** What an error means to a tool. */
interface Reading {
  readonly error: ToolExecutionError;
  readonly classification: Classification;
  readonly outcome: BreakerOutcome;
}

/** Servers share their few errors between calls, so each is read once. */
type Readings = Map<ToolExecutionError, Reading>;

const readingOf = ({ guarded, readings }: FleetTool, thrown: ToolExecutionError, doubt: boolean): Reading => {
  const known = doubt ? readings.doubtful : readings.certain;
  const before = known.get(thrown);
  if (before !== undefined) return before;
  const error = doubted(thrown, guarded.effects, doubt);
  const { classification, rule } = classify(error, guarded.classification);
  const reading = { error, classification, outcome: breakerOutcome(error, classification, rule) };
  known.set(thrown, reading);
  return reading;
};

/** One call: what it has used up at the tool that it is at. */
interface FleetCall {
  readonly key: string;
  readonly ended: (end: Ended) => void;
  tool: FleetTool;
  alternatives: readonly string[];
  startedMs: number;
  own: number;
  all: number;
  doubt: boolean;
  previousDelayMs: number | undefined;
  /** When its turn ends. */
  readonly untilMs: number;
  /** What it waits for: its attempt, or the next one. */
  waits: Task | undefined;
}

const OPEN = new ToolExecutionError('circuit_open', 'the circuit breaker is open');
/**
 * The pure policies alone, called as the layer calls them: the same decisions without the streams around them, for many
 * thousand clients. It knows calls with retries, breakers, budget, timeouts and alternatives, and turns of them; not
 * keys, hooks and hedges.
 */
export class StormEngine implements Engine {
  readonly #parts: EngineParts;
  readonly #tools = new Map<string, FleetTool>();
  readonly #budget: RetryBudget | undefined;
  readonly #random: () => number;
  #calls = 0;

  constructor(parts: EngineParts, seed: number) {
    this.#parts = parts;
    this.#random = streamOf(seed, `jitter ${parts.process}`);
    const budget = budgetFor(parts);
    this.#budget = budget === false ? undefined : createRetryBudget(budget);
    const names = Object.keys(parts.scenario.tools);
    const registry = createRegistry(
      names.map((name) => ({ name, policy: policyFor(parts, name), execute: () => undefined })),
      { profile: 'interactive', defaults: defaultsFor(parts), breakerKey: undefined },
    );
    for (const name of names) {
      const guarded = registry.get(name);
      const entry = parts.scenario.tools[name];
      const server = parts.servers.get(entry?.server ?? '');
      if (guarded === undefined || server === undefined) throw new RangeError(`tool ${name}: its server is not there`);
      this.#tools.set(name, {
        name,
        guarded,
        breaker: guarded.breaker === undefined ? undefined : new PureBreaker(guarded.breaker),
        deadlines: new StormDeadlines(parts.time, guarded.timeoutMs),
        server,
        acts: actsAgain(parts, name),
        readings: { certain: new Map(), doubtful: new Map() },
      });
    }
  }

  /** @returns what to cancel when its turn ends before it does */
  call(toolName: string, ended: (end: Ended) => void, untilMs: number = Infinity): Task {
    const tool = this.#tools.get(toolName);
    if (tool === undefined) throw new RangeError(`there is no tool ${toolName}`);
    const now = this.#parts.time.now();
    this.#budget?.recordCall(now);
    const call: FleetCall = {
      key: tool.acts ? `${this.#parts.process} ${++this.#calls}` : '',
      ended,
      tool,
      alternatives: tool.guarded.alternatives,
      startedMs: now,
      own: 0,
      all: 0,
      doubt: false,
      previousDelayMs: undefined,
      untilMs,
      waits: undefined,
    };
    this.#attempt(call);
    return { cancel: () => call.waits?.cancel() };
  }

  turn(planName: string, ended: (end: Ended) => void): void {
    const entry = this.#parts.scenario.plans?.[planName];
    if (entry === undefined) throw new RangeError(`there is no plan ${planName}`);
    new PlanRun(entry, this.#parts.time, this, ended).start();
  }

  #attempt(call: FleetCall): void {
    const { tool } = call;
    const { time, tally } = this.#parts;
    const now = time.now();
    const permit = this.#admit(tool, now);
    if (permit === null) return this.#failed(call, OPEN, 'transient', false);
    call.own++;
    call.all++;
    tally.attempt(now, call.own === 1);
    const attempt = new Attempt(call, tally, (error) => {
      if (error === undefined) this.#succeeded(call, permit, now);
      else this.#attemptFailed(call, permit, now, error);
    });
    if (call.untilMs !== Infinity) call.waits = { cancel: () => this.#leave(tool, attempt, permit, now) };
    attempt.begin();
  }

  /** A permit, `undefined` where nothing guards, or `null` for a refusal. */
  #admit({ breaker, name }: FleetTool, atMs: number): Permit | undefined | null {
    if (breaker === undefined) return undefined;
    const { memory, settings } = breaker;
    const random = memory.rampFromMs === undefined ? {} : { random: this.#random() };
    const [next, permit] = decideBreaker(memory, { type: 'admit', atMs, ...random }, settings);
    this.#become(breaker, name, next);
    return permit ?? null;
  }

  #become(breaker: PureBreaker, name: string, next: BreakerMemory): void {
    const before = breaker.memory.type;
    breaker.memory = next;
    if (next.type !== before) this.#parts.breakerChanged(name, next.type);
  }

  #settle(
    { breaker, name }: FleetTool,
    permit: Permit | undefined,
    startedMs: number,
    outcome: BreakerOutcome,
    retryAfterMs?: number,
  ): void {
    if (breaker === undefined || permit === undefined) return;
    const atMs = this.#parts.time.now();
    const hint = retryAfterMs === undefined ? {} : { retryAfterMs };
    const input = { type: 'outcome', atMs, permit, outcome, durationMs: atMs - startedMs, ...hint } as const;
    this.#become(breaker, name, decideBreaker(breaker.memory, input, breaker.settings)[0]);
  }

  #leave(tool: FleetTool, attempt: Attempt, permit: Permit | undefined, startedMs: number): void {
    attempt.cancel();
    this.#settle(tool, permit, startedMs, 'ignored');
  }

  #succeeded(call: FleetCall, permit: Permit | undefined, startedMs: number): void {
    this.#settle(call.tool, permit, startedMs, 'success');
    call.ended({ succeeded: true, refused: false });
  }

  #attemptFailed(call: FleetCall, permit: Permit | undefined, startedMs: number, thrown: ToolExecutionError): void {
    const { error, classification, outcome } = readingOf(call.tool, thrown, call.doubt);
    if (error.uncertain) call.doubt = true;
    this.#settle(call.tool, permit, startedMs, outcome, error.retryAfterMs);
    this.#failed(call, error, classification, true);
  }

  #failed(call: FleetCall, error: ToolExecutionError, classification: Classification, attempted: boolean): void {
    const { tool, own } = call;
    const { retry, effects, safetyCritical, enforcesKey } = tool.guarded;
    const now = this.#parts.time.now();
    const question = {
      error,
      classification,
      breakerState: tool.breaker?.memory.type,
      attempt: own,
      maxAttempts: retry.maxAttempts,
      elapsedMs: now - call.startedMs,
      maxTotalTimeMs: retry.maxTotalTimeMs,
      nextDelayMs: backoffDelayMs(retry, Math.max(0, own - 1), call.previousDelayMs, this.#random),
      budgetAvailable: this.#budget?.available(now) ?? true,
      effects,
      safetyCritical,
      hasIdempotencyKey: enforcesKey,
      retrySafe: false,
    };
    const refusal = retryRefusal(question);
    const leftMs = call.untilMs - now;
    if (leftMs <= 0 || (isAboutTime(refusal) && retryDelayMs(question) >= leftMs))
      return call.ended({ succeeded: false, refused: false });
    if (refusal === undefined) return this.#retry(call, question.nextDelayMs, retryDelayMs(question));
    const [name, ...alternatives] = call.alternatives;
    const alternative = name === undefined ? undefined : this.#tools.get(name);
    if (alternative === undefined || mayBeDoneElsewhere(question) || WITHOUT_ALTERNATIVE.has(error.kind))
      return call.ended({ succeeded: false, refused: !attempted && call.all === 0 });
    Object.assign(call, { tool: alternative, alternatives, startedMs: now, own: 0, previousDelayMs: undefined });
    this.#attempt(call);
  }

  #retry(call: FleetCall, nextDelayMs: number, delayMs: number): void {
    const { time } = this.#parts;
    this.#budget?.recordRetry(time.now());
    call.previousDelayMs = nextDelayMs;
    call.waits = time.at(time.now() + delayMs, 0, () => {
      if (time.now() - call.startedMs >= call.tool.guarded.retry.maxTotalTimeMs)
        return call.ended({ succeeded: false, refused: false });
      this.#attempt(call);
    });
  }
}
