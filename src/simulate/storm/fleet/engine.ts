import type { Classification } from '../../../contract/error-kind.ts';
import type { DecisiveError, ToolExecutionError } from '../../../contract/tool-error.ts';
import { createRegistry, type GuardedTool } from '../../../layer/registry.ts';
import { breakerOutcome } from '../../../policy/breaker/outcome.ts';
import type { BreakerOutcome, Permit } from '../../../policy/breaker/reducer.ts';
import { classify } from '../../../policy/recovery/classify.ts';
import { WITHOUT_ALTERNATIVE, isAboutTime } from '../../../policy/recovery/decide.ts';
import { doubted } from '../../../policy/recovery/proof.ts';
import { backoffDelayMs } from '../../../policy/retry/backoff.ts';
import { createRetryBudget, type RetryBudget } from '../../../policy/retry/budget.ts';
import { mayBeDoneElsewhere, retryDelayMs, retryRefusal } from '../../../policy/retry/refusal.ts';
import { streamOf } from '../chance.ts';
import { Attempt } from './attempt.ts';
import { PureBreaker } from './breaker.ts';
import { ProcessDeadlines, type StormDeadlines } from './deadlines.ts';
import { actsAgain, budgetFor, defaultsFor, policyFor, type Ended, type Engine, type EngineParts } from '../engine.ts';
import { PlanRun } from './plan-run.ts';
import type { Server } from '../server.ts';

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

/** What an attempt may take: here none shows progress, so a limit on silence is one on all of it. */
const limitOf = ({ timeoutMs, idleTimeoutMs = Infinity }: GuardedTool): number => Math.min(timeoutMs, idleTimeoutMs);

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
  /** When its turn ends: from then on nothing more is begun, and an attempt that runs goes on. */
  readonly untilMs: number;
}

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
  /** Whether a call can take effect again, at its own tool or at an alternative. */
  readonly #acts: boolean;
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
    const deadlines = new ProcessDeadlines(parts.time);
    this.#acts = names.some((name) => actsAgain(parts, name));
    for (const name of names) {
      const guarded = registry.get(name);
      const entry = parts.scenario.tools[name];
      const server = parts.servers.get(entry?.server ?? '');
      if (guarded === undefined || server === undefined) throw new RangeError(`tool ${name}: its server is not there`);
      this.#tools.set(name, {
        name,
        guarded,
        breaker:
          guarded.breaker === undefined
            ? undefined
            : new PureBreaker(guarded.breaker, (state) => parts.breakerChanged(name, state)),
        deadlines: deadlines.of(limitOf(guarded)),
        server,
        acts: actsAgain(parts, name),
        readings: { certain: new Map(), doubtful: new Map() },
      });
    }
  }

  call(toolName: string, ended: (end: Ended) => void, untilMs: number = Infinity): void {
    const tool = this.#tools.get(toolName);
    if (tool === undefined) throw new RangeError(`there is no tool ${toolName}`);
    const now = this.#parts.time.now();
    this.#budget?.recordCall(now);
    const call: FleetCall = {
      key: this.#acts ? `${this.#parts.process} ${++this.#calls}` : '',
      ended,
      tool,
      alternatives: tool.guarded.alternatives,
      startedMs: now,
      own: 0,
      all: 0,
      doubt: false,
      previousDelayMs: undefined,
      untilMs,
    };
    this.#attempt(call);
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
    const permit = tool.breaker?.admit(now, this.#random);
    if (tool.breaker !== undefined && permit === undefined) return this.#refused(call, tool.breaker);
    call.own++;
    call.all++;
    tally.attempt(now, call.own === 1);
    new Attempt(call, tally, (error) => {
      if (error === undefined) this.#succeeded(call, permit, now);
      else this.#attemptFailed(call, permit, now, error);
    }).begin();
  }

  #settle(
    { breaker }: FleetTool,
    permit: Permit | undefined,
    startedMs: number,
    outcome: BreakerOutcome,
    retryAfterMs?: number,
  ): void {
    if (permit !== undefined) breaker?.settle(permit, startedMs, this.#parts.time.now(), outcome, retryAfterMs);
  }

  #succeeded(call: FleetCall, permit: Permit | undefined, startedMs: number): void {
    if (permit !== undefined) call.tool.breaker?.progressed(permit, this.#parts.time.now());
    this.#settle(call.tool, permit, startedMs, 'success');
    call.ended({ succeeded: true, refused: false });
  }

  #attemptFailed(call: FleetCall, permit: Permit | undefined, startedMs: number, thrown: ToolExecutionError): void {
    const { error, classification, outcome } = readingOf(call.tool, thrown, call.doubt);
    if (error.uncertain) call.doubt = true;
    // What a good answer asks to wait is for the call; a breaker that its slowness opens is not told.
    this.#settle(call.tool, permit, startedMs, outcome, outcome === 'failure' ? error.retryAfterMs : undefined);
    this.#failed(call, error, classification, true);
  }

  /** What is refused proves nothing about the attempts before it. */
  #refused(call: FleetCall, breaker: PureBreaker): void {
    const uncertain = call.doubt && call.tool.guarded.effects !== 'read';
    const retryAfterMs = breaker.hintMs(this.#parts.time.now());
    this.#failed(call, { kind: 'circuit_open', executed: uncertain, uncertain, retryAfterMs }, 'transient', false);
  }

  #failed(call: FleetCall, error: DecisiveError, classification: Classification, attempted: boolean): void {
    const { tool, own } = call;
    const { retry, effects, safetyCritical, enforcesKey } = tool.guarded;
    const now = this.#parts.time.now();
    const question = {
      error,
      classification,
      breakerState: tool.breaker?.stateAt(now),
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
    time.at(time.now() + delayMs, 0, () => {
      if (time.now() - call.startedMs >= call.tool.guarded.retry.maxTotalTimeMs)
        return call.ended({ succeeded: false, refused: false });
      this.#attempt(call);
    });
  }
}
