import { Observable } from 'rxjs';
import type { TraceEvent } from '../../src/contract/event.ts';
import type { AnyTool, ToolContext } from '../../src/contract/tool.ts';
import { createSpillway, type Spillway } from '../../src/spillway.ts';
import { scriptedTool } from '../../src/testing/scripted-tool.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/virtual-runtime.ts';
import { behave, healthy, spoilt, type Behaviour } from './behaviour.ts';
import { BreakerWatch } from './breaker-watch.ts';
import type { CallPlace, CallSurroundings } from './call-place.ts';
import { CallWatch } from './call-watch.ts';
import { drawExtras, type Extras } from './extras.ts';
import { Findings } from './findings.ts';
import { HOOK_TIMEOUT_MS, HookWatch } from './hook-watch.ts';
import { hostHandler } from './host-handler.ts';
import { drawScenario, policyOf, type Scenario, type ToolSpec } from './scenario.ts';
import { inputOf, spoils, withSchemas, type Input } from './schemas.ts';
import { Stalls } from './stalls.ts';
import { TraceDigest, line } from './trace-digest.ts';
import { TurnWatch } from './turn-watch.ts';

/** A call that is about to begin: what the trace does not say of it. */
export interface Beginning {
  readonly place: CallPlace;
  readonly tool: ToolSpec;
}

/** A layer under virtual time with everything that watches it. It drives nothing; `simulate` does. */
export class World implements CallSurroundings {
  readonly scenario: Scenario;
  readonly extras: Extras;
  readonly hookWatch: HookWatch | undefined;
  readonly runtime: VirtualRuntime;
  readonly findings: Findings;
  readonly spillway: Spillway;
  readonly calls: Map<string, CallWatch> = new Map();
  readonly active: Set<CallWatch> = new Set();
  readonly turns: Set<TurnWatch> = new Set();
  readonly breakers: Map<string, BreakerWatch> = new Map();
  /** Set around a subscription: what the next events belong to. */
  beginning: Beginning | TurnWatch | undefined;
  /** The faults have stopped. */
  calm = false;
  byHand = false;
  closed = false;
  /** Timers of the layer itself. */
  timers = 0;
  readonly digest: TraceDigest = new TraceDigest();
  readonly log: ((line: string) => void) | undefined;
  readonly #toolsByName: Map<string, ToolSpec>;
  readonly #turnsById = new Map<string, TurnWatch>();
  readonly #startMs: number;
  readonly #callStarts: number[] = [];
  /** Calls whose failure the error handler has just said no more is to be done about. */
  readonly #givenUp = new Set<string>();
  readonly #retryStarts: number[] = [];
  readonly #stalls = new Stalls();
  /** Calls whose subscriber has gone before the trace told of their start. */
  readonly #left = new Map<string, number>();
  seq = 0;
  #atMs = 0;
  #lastAnswer: { readonly atMs: number; readonly n: number } | undefined;
  dropsExpected = 0;
  /** Breakers whose state somebody watches. */
  watched = 0;

  constructor(seed: number, log?: (line: string) => void) {
    this.log = log;
    this.scenario = drawScenario(seed);
    this.extras = drawExtras(seed);
    if (this.extras.hooks !== undefined) this.hookWatch = new HookWatch(this, this.extras.hooks);
    this.runtime = virtualRuntime({ seed, shuffle: true });
    this.#startMs = this.runtime.now();
    this.findings = new Findings(() => this.elapsedMs);
    this.#toolsByName = new Map(this.scenario.tools.map((spec) => [spec.name, spec]));
    const { faults, retryBudget } = this.scenario;
    this.spillway = createSpillway({
      tools: this.scenario.tools.map((spec) => this.#toolOf(spec)),
      runtime: this.#countedRuntime(),
      retryBudget,
      ...(this.hookWatch === undefined ? {} : { hooks: this.hookWatch.hooks, hookTimeoutMs: HOOK_TIMEOUT_MS }),
      ...(faults.slow_handler === undefined && this.extras.handler === undefined
        ? {}
        : { errorHandler: hostHandler(this, this.#givenUp), errorHandlerTimeoutMs: 30 }),
    });
    this.spillway.trace$.subscribe((event) => this.#hear(event));
    if (faults.bad_subscriber !== undefined) {
      this.spillway.trace$.subscribe(({ seq }) => {
        if (seq % 7 !== 0 || this.calm) return;
        this.dropsExpected++;
        throw new Error('a subscriber of the trace throws');
      });
    }
  }

  /** Since the run began. */
  get elapsedMs(): number {
    return this.runtime.now() - this.#startMs;
  }

  now(): number {
    return this.runtime.now();
  }

  toolNamed(name: string): ToolSpec | undefined {
    return this.#toolsByName.get(name);
  }

  breakerOf(tool: ToolSpec, { envelope, tenant }: CallPlace): BreakerWatch | undefined {
    if (tool.settings === undefined) return undefined;
    const hint = envelope?.breakerHint;
    if (hint === 'global') return this.#breaker('*', tenant, undefined);
    return this.#breaker(hint === 'dependency' ? (tool.dependency ?? tool.name) : tool.name, tenant, tool);
  }

  stall(dueMs: number, ms: number): void {
    this.runtime.stall(ms);
    this.#stalls.add(this.#startMs + dueMs, this.now());
  }

  foundPassedMs(deadlineMs: number): number {
    return this.#stalls.foundPassedMs(deadlineMs);
  }

  inputOf(n: number): Input {
    return this.calm ? { n } : inputOf(this.scenario.seed, this.extras, n);
  }

  retried(atMs: number): void {
    const { retryBudget } = this.scenario;
    if (retryBudget === false) return;
    this.#retryStarts.push(atMs);
    const fromMs = Math.floor(atMs) - retryBudget.windowMs;
    const within = (times: readonly number[]): number => times.filter((ms) => Math.floor(ms) > fromMs).length;
    const [retries, calls] = [within(this.#retryStarts), within(this.#callStarts)];
    const allowed = retryBudget.ratio * calls + (retryBudget.minPerSecond * retryBudget.windowMs) / 1000;
    this.findings.check(
      retries <= allowed + 1e-6,
      'RET-4',
      () => `${retries} retries in ${retryBudget.windowMs} ms with ${calls} calls, ${allowed} allowed`,
    );
  }

  /** A call's subscriber goes, with or after event `seq`. */
  leaves(callId: string, seq: number): void {
    const call = this.calls.get(callId);
    if (call === undefined) this.#left.set(callId, seq);
    else if (!call.settled) call.goneSeq = seq;
  }

  /** Virtual time is about to go on. */
  leaving(): void {
    const now = this.now();
    for (const call of this.active) call.leaving(now);
    // After close() the trace tells nothing more.
    if (!this.closed) for (const turn of this.turns) turn.leaving(now);
  }

  /** Work that was given up is over in the same instant. */
  checkGivenUp(): void {
    for (const call of this.active) {
      if (!call.gone) continue;
      this.findings.check(
        call.running === undefined,
        'RSC-1',
        () => `call ${call.place.n} was given up and attempt ${call.running?.number} runs on`,
      );
      this.active.delete(call);
    }
    for (const turn of this.turns) if (turn.over) this.turns.delete(turn);
    this.#checkTimers();
  }

  /** With nothing under way, nothing of the layer may wait. */
  #checkTimers(): void {
    // A watched breaker holds one.
    if (this.timers <= this.watched) return;
    if (this.active.size > 0 || this.turns.size > 0) return;
    this.findings.check(false, 'RSC-1', () => `${this.timers} timers are left and nothing is under way`);
  }

  #breaker(name: string, scope: string, tool: ToolSpec | undefined): BreakerWatch {
    const key = `${name}|${scope}`;
    let watch = this.breakers.get(key);
    if (watch === undefined) {
      const breaker =
        tool?.breaker === undefined
          ? this.spillway.breakers.get(name, scope)
          : this.spillway.breakers.get(name, scope, tool.breaker);
      watch = new BreakerWatch(key, breaker, tool?.settings, this.findings, () => this.now());
      this.breakers.set(key, watch);
    }
    return watch;
  }

  #toolOf(spec: ToolSpec): AnyTool {
    const tool = scriptedTool(
      {
        name: spec.name,
        policy: policyOf(spec),
        ...(spec.dependency === undefined ? {} : { dependency: spec.dependency }),
        script: (input, context) => this.#perform(spec, input as Input, context),
        answered: (_, input) => this.#answered((input as Input).n),
      },
      this.runtime.scheduler,
    );
    return withSchemas(tool, this.extras);
  }

  #perform(spec: ToolSpec, input: Input, context: ToolContext): Behaviour {
    const { n } = input;
    const { seed, faults } = this.scenario;
    const drawn = this.calm
      ? healthy(spec, n, context.attempt)
      : behave(seed, faults, spec, n, context.attempt, this.elapsedMs);
    const behaviour = !this.calm && spoils(seed, this.extras, n, spec.index, context.attempt) ? spoilt(drawn) : drawn;
    if (this.extras.schemas !== undefined)
      this.findings.check(
        input.checked === true && input.misfit === undefined,
        'SCH-1',
        () => `${spec.name} gets ${JSON.stringify(input)}, which its schema did not give`,
      );
    const call = this.calls.get(context.callKey);
    this.findings.check(call?.place.n === n, 'TRC-1', () => `${spec.name} runs for call ${n}, which nobody began`);
    if (call !== undefined) this.hookWatch?.executes(call, input);
    call?.executes(context.attempt, behaviour, behaviour.ignoresSignal === true ? undefined : context.signal);
    if (behaviour.throws === true) this.findings.saw('synchronous throw');
    this.log?.(`      ${spec.name} runs for ${n}: ${JSON.stringify(behaviour)}`);
    return behaviour;
  }

  #answered(n: number): void {
    const atMs = this.now();
    const last = this.#lastAnswer;
    if (last?.atMs === atMs && last.n !== n)
      this.findings.saw(
        last.n < n ? 'two answers at one instant, in order' : 'two answers at one instant, out of order',
      );
    this.#lastAnswer = { atMs, n };
    for (const call of this.calls.values()) {
      if (call.place.n !== n) continue;
      if (call.running === undefined && call.lastKind === 'timeout') this.findings.saw('late answer after a timeout');
      if (call.running !== undefined && (call.running.endsByMs === atMs || call.deadlineMs === atMs))
        this.findings.saw('answer and deadline at one instant');
    }
  }

  #countedRuntime(): VirtualRuntime {
    const { runtime } = this;
    return Object.create(runtime, {
      after: {
        value: (ms: number) =>
          new Observable<0>((subscriber) => {
            this.timers++;
            subscriber.add(() => this.timers--);
            runtime.after(ms).subscribe(subscriber);
          }),
      },
    }) as VirtualRuntime;
  }

  #hear(event: TraceEvent): void {
    this.log?.(`${this.elapsedMs.toFixed(1).padStart(8)} ${line(event)}`);
    this.findings.check(
      event.seq === this.seq + (event.type === 'layer_started' ? 0 : 1),
      'TRC-1',
      () => `event ${event.seq} follows ${this.seq}`,
    );
    this.findings.check(
      event.atMs >= this.#atMs && event.atMs === this.now(),
      'TRC-1',
      () => `time goes from ${this.#atMs} to ${event.atMs}`,
    );
    this.seq = event.seq;
    this.#atMs = event.atMs;
    this.digest.add(event);
    if (event.type !== 'attempt_succeeded' && event.type !== 'attempt_failed' && event.type !== 'attempt_canceled')
      for (const breaker of this.breakers.values()) breaker.unexplained();
    if (event.source === 'layer') {
      if (event.type === 'breaker_changed') this.#breakerChanged(event);
      return;
    }
    if (event.source === 'turn') {
      const turn =
        event.type === 'turn_started' && this.beginning instanceof TurnWatch
          ? this.beginning
          : this.#turn(event.turnId);
      if (event.type === 'turn_started' && turn !== undefined) {
        this.turns.add(turn);
        this.#turnsById.set(event.turnId, turn);
      }
      turn?.event(event);
      return;
    }
    const call = event.type === 'call_started' ? this.#callStarted(event) : this.calls.get(event.callId);
    this.findings.check(call !== undefined, 'TRC-1', () => `${event.type} of a call that never started`);
    if (event.type === 'decision' && this.#givenUp.delete(event.callId))
      this.findings.check(
        event.strategy === 'fail',
        'RET-6',
        () => `the error handler gave up ${event.callId}, the layer decides ${event.strategy}`,
      );
    if (event.type === 'decision' && event.reason.includes('was overruled by'))
      this.findings.saw('the error handler is overruled by a rule');
    call?.event(event);
    if (call?.settled === true) this.active.delete(call);
  }

  #turn(turnId: string | undefined): TurnWatch | undefined {
    return turnId === undefined ? undefined : this.#turnsById.get(turnId);
  }

  #breakerChanged(event: Extract<TraceEvent, { type: 'breaker_changed' }>): void {
    this.breakers.get(`${event.toolName}|${event.scope}`)?.changed(event, this.byHand);
    if (event.to !== 'open') return;
    for (const call of this.active)
      if (call.backsOffUntilMs !== undefined && call.tool.name === event.toolName)
        this.findings.saw('breaker opens while another call backs off');
  }

  #callStarted(event: Extract<TraceEvent, { type: 'call_started' }>): CallWatch | undefined {
    const now = this.now();
    this.#callStarts.push(now);
    const { beginning } = this;
    const turn = this.#turn(event.turnId);
    const node = turn?.node(event.nodeId);
    const tool = this.toolNamed(event.toolName);
    if (tool === undefined) return undefined;
    let place: CallPlace | undefined;
    if (turn !== undefined && node !== undefined) {
      place = { n: node.n, startedMs: now, ownDeadlineMs: Infinity, tenant: '', turnDeadlineMs: turn.deadlineMs };
    } else if (beginning !== undefined && !(beginning instanceof TurnWatch)) {
      ({ place } = beginning);
    }
    if (place === undefined) return undefined;
    const call = new CallWatch(event.callId, tool, place, this);
    call.goneSeq = this.#left.get(event.callId) ?? Infinity;
    this.calls.set(event.callId, call);
    this.active.add(call);
    turn?.calling(event.nodeId, call);
    return call;
  }
}
