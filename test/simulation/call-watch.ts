import type { RetryRecord } from '../../src/contract/envelope.ts';
import type { ToolEvent } from '../../src/contract/event.ts';
import type { Behaviour } from './behaviour.ts';
import type { Admitted, BreakerWatch, Ended } from './breaker-watch.ts';
import type { CallPlace, CallSurroundings, Running } from './call-place.ts';
import type { InvariantId } from './findings.ts';
import { delayInterval, isRetrySafe, sameRecords } from './retries.ts';
import type { ToolSpec } from './scenario.ts';
import { wentSilent, whyUntimely } from './timeouts.ts';

type Of<T extends ToolEvent['type']> = Extract<ToolEvent, { type: T }>;

const SLACK_MS = 1e-6;
/** What the layer or the caller said, not the tool: a breaker counts it as nothing. */
const NEUTRAL: ReadonlySet<string> = new Set(['canceled', 'not_permitted', 'invalid_parameters']);

/** What ends a call from outside is decided by. */
const OUTER_CODES: ReadonlySet<string> = new Set(['canceled', 'turn_deadline']);

/** One call, from its first event to its result, held against what must be true of every call. */
export class CallWatch {
  readonly callId: string;
  readonly place: CallPlace;
  tool: ToolSpec;
  running: Running | undefined;
  attempts = 0;
  own = 0;
  settled = false;
  /**
   * The last event before its subscriber, or its turn's, had gone: nothing more may happen. A subscriber hears an event
   * before the trace does.
   */
  goneSeq: number = Infinity;
  late = false;
  succeeded: { readonly n: number; readonly tool: string; readonly attempt: number } | undefined;
  /** Times at which it waits for a retry. */
  backsOffUntilMs: number | undefined;
  lastKind = '';
  physical = 0;
  /** Its first tool's turn has come. Until then a deadline ends it; it is not detached. */
  begun = false;
  /** Its place at a breaker while a hook is asked about the attempt. */
  #admitted: { readonly breaker: BreakerWatch; readonly place: Admitted } | undefined;
  readonly #around: CallSurroundings;
  readonly #records: RetryRecord[] = [];
  /** The retry that was decided and has not begun. */
  #next: RetryRecord | undefined;
  readonly #triedTools = new Set<string>();
  #trialMs: number;
  #failure: { readonly event: Of<'attempt_failed'> | Of<'rejected'>; readonly durationMs: number } | undefined;
  #decision: Of<'decision'> | undefined;
  #previousTopMs: number | undefined;

  constructor(callId: string, tool: ToolSpec, place: CallPlace, around: CallSurroundings) {
    this.callId = callId;
    this.tool = tool;
    this.place = place;
    this.#around = around;
    this.#trialMs = place.startedMs;
    this.#triedTools.add(tool.name);
  }

  get gone(): boolean {
    return this.goneSeq < Infinity;
  }

  get deadlineMs(): number {
    return Math.min(this.place.ownDeadlineMs, this.late ? Infinity : this.place.turnDeadlineMs);
  }

  #check(holds: boolean, invariant: InvariantId, message: () => string): void {
    if (holds) return;
    this.#around.findings.check(false, invariant, () => `call ${this.place.n} (${this.tool.name}): ${message()}`);
  }

  event(event: ToolEvent): void {
    this.#check(!this.settled, 'TRC-1', () => `${event.type} after its result`);
    // Whoever leaves while it is being ended hears no more, but the trace does.
    const ending =
      event.type === 'attempt_canceled' ||
      event.type === 'abandoned' ||
      (event.type === 'decision' && OUTER_CODES.has(event.code)) ||
      (event.type === 'settled' &&
        (event.result.error?.code === 'canceled' || event.result.error?.code === 'deadline_exceeded'));
    this.#check(event.seq <= this.goneSeq || ending, 'RSC-1', () => `${event.type} after it was given up`);
    this.#check(
      (event.late === true) === this.late,
      'TRC-1',
      () => `${event.type} is ${this.late ? 'not ' : ''}marked late`,
    );
    switch (event.type) {
      case 'attempt_started':
        return this.#started(event);
      case 'attempt_succeeded':
        return this.#succeeded(event);
      case 'attempt_failed':
        return this.#failed(event);
      case 'attempt_canceled':
        return this.#canceled(event);
      case 'rejected':
        return this.#rejected(event);
      case 'decision':
        return this.#decided(event);
      case 'alternative_used':
        return this.#alternative(event);
      case 'settled':
        return this.#settled(event);
      case 'progress':
        if (this.running !== undefined) this.running.heardMs = this.#around.now();
        return undefined;
      case 'abandoned':
        this.givesBack();
        return this.#check(this.goneSeq < Infinity, 'RSC-1', () => 'abandoned, and nobody gave it up');
      default:
        return undefined;
    }
  }

  /** The tool is really called. */
  executes(attempt: number, behaviour: Behaviour, signal: AbortSignal | undefined): void {
    const { running } = this;
    this.physical++;
    this.#check(
      running !== undefined && !running.executed && running.own === attempt,
      'TRC-1',
      () => `the tool runs as attempt ${attempt} and no start was told`,
    );
    this.#check(!this.gone && !this.settled, 'RSC-1', () => 'the tool runs after the call ended');
    if (running === undefined) return;
    running.executed = true;
    running.behaviour = behaviour;
    if (signal !== undefined) running.signal = signal;
  }

  /** A hook is asked about the next attempt: the breaker has let it through. */
  admits(): void {
    this.begun = true;
    const breaker = this.#around.breakerOf(this.tool, this.place);
    this.#admitted = breaker === undefined ? undefined : { breaker, place: breaker.admitted() };
  }

  /** What was let through and is no attempt gives its place back. */
  givesBack(): void {
    this.#admitted?.breaker.ended(this.#admitted.place, 'neutral', undefined);
    this.#admitted = undefined;
  }

  /** Virtual time is about to go on: what had to end by now has ended. */
  leaving(now: number): void {
    const { running, tool } = this;
    if (running !== undefined) {
      this.#check(now < running.endsByMs, 'TO-1', () => `attempt ${running.number} runs ${now - running.startedMs} ms`);
      if (tool.idleTimeoutMs !== undefined)
        this.#check(
          now < running.heardMs + tool.idleTimeoutMs,
          'TO-1',
          () => `attempt ${running.number} is silent for ${now - running.heardMs} ms`,
        );
    }
    this.#check(this.settled || this.gone || now < this.deadlineMs, 'DL-1', () => 'it has not settled by its deadline');
  }

  #started({ attempt }: Of<'attempt_started'>): void {
    if (this.#next !== undefined) this.#records.push(this.#next);
    this.#next = undefined;
    const now = this.#around.now();
    const { envelope } = this.place;
    const { tool } = this;
    this.attempts++;
    this.own++;
    const max = envelope?.maxAttempts ?? tool.retry.maxAttempts;
    this.#check(attempt === this.attempts, 'TRC-1', () => `attempt ${attempt} follows attempt ${this.attempts - 1}`);
    this.#check(this.running === undefined, 'RET-2', () => `attempt ${attempt} starts while another runs`);
    this.#check(this.own <= max, 'RET-1', () => `attempt ${this.own} at one tool, ${max} allowed`);
    this.#check(
      now < this.deadlineMs,
      'DL-1',
      () => `attempt ${attempt} starts ${now - this.deadlineMs} ms after the deadline`,
    );
    if (this.own > 1) {
      const maxTotalMs = envelope?.maxElapsedMs ?? tool.retry.maxTotalTimeMs;
      this.#check(
        now < this.#trialMs + maxTotalMs,
        'DL-1',
        () => `attempt ${attempt} starts ${now - this.#trialMs} ms after the first, ${maxTotalMs} allowed`,
      );
      this.#check(this.backsOffUntilMs !== undefined, 'RET-3', () => `attempt ${attempt} was decided by nobody`);
      this.#check(
        now + SLACK_MS >= (this.backsOffUntilMs ?? 0),
        'RET-2',
        () => `attempt ${attempt} starts before its wait is over`,
      );
    }
    this.backsOffUntilMs = undefined;
    const breaker = this.#around.breakerOf(tool, this.place);
    if (this.attempts === 1) this.#trialMs = now;
    this.begun = true;
    const limitMs = Math.min(tool.timeoutMs, envelope?.timeoutMs ?? Infinity);
    this.running = {
      number: attempt,
      own: this.own,
      startedMs: now,
      endsByMs: now + limitMs,
      breaker,
      admitted: this.#admitted?.place ?? breaker?.admitted(),
      heardMs: now,
      executed: false,
    };
    this.#admitted = undefined;
  }

  #ends(durationMs: number, number: number, how: Ended, hintMs?: number): Running | undefined {
    const { running } = this;
    this.#check(running?.number === number, 'TRC-1', () => `attempt ${number} ends and was not running`);
    if (running === undefined) return undefined;
    this.#check(
      Math.abs(durationMs - (this.#around.now() - running.startedMs)) < SLACK_MS,
      'TRC-2',
      () => `attempt ${number} says it took ${durationMs} ms`,
    );
    if (running.admitted !== undefined) running.breaker?.ended(running.admitted, how, hintMs);
    this.running = undefined;
    return running;
  }

  #succeeded({ attempt, durationMs }: Of<'attempt_succeeded'>): void {
    const running = this.#ends(durationMs, attempt, 'success');
    this.#check(
      running?.behaviour !== undefined &&
        running.behaviour.spoilt !== true &&
        !('error' in running.behaviour) &&
        running.behaviour.hangs !== true,
      'RES-3',
      () => `attempt ${attempt} succeeded, but its tool did not`,
    );
    this.#check(
      running?.signal?.aborted !== true,
      'RSC-1',
      () => `the signal of attempt ${attempt} is aborted although it succeeded`,
    );
    if (this.own > 1) this.#around.findings.saw('success on a retry');
    this.succeeded = { n: this.place.n, tool: this.tool.name, attempt: this.own };
  }

  #failed(event: Of<'attempt_failed'>): void {
    const { attempt, durationMs, error, classification, timeoutMs } = event;
    const { findings } = this.#around;
    const answered =
      !NEUTRAL.has(error.kind) &&
      classification === 'permanent' &&
      error.kind !== 'timeout' &&
      error.kind !== 'transport_error';
    const wasProbe = this.running?.admitted?.probe === true;
    const how = NEUTRAL.has(error.kind)
      ? 'neutral'
      : classification === 'transient'
        ? 'failure'
        : answered
          ? 'success'
          : 'neutral';
    const running = this.#ends(durationMs, attempt, how, error.retryAfterMs);
    if (wasProbe && answered) findings.saw('permanent answer in half-open');
    if (timeoutMs !== undefined) {
      this.#check(
        running?.signal === undefined || running.signal.aborted,
        'RSC-1',
        () => `attempt ${attempt} timed out and its signal is not aborted`,
      );
      if (wentSilent(this.tool, event)) findings.saw('idle timeout');
      const untimely = running && whyUntimely(running, this.tool, event, this.#around);
      this.#check(untimely === undefined, 'TO-1', () => `attempt ${attempt} timed out, though ${untimely}`);
    } else {
      const { expected, spoilt } = running?.behaviour ?? {};
      if (spoilt === true) findings.saw('an output does not fit');
      this.#check(
        spoilt !== true || error.uncertain === true,
        'SCH-1',
        () => `attempt ${attempt} ran, gave what does not fit, and is said to be without effect`,
      );
      this.#check(
        expected === classification,
        'CLS-1',
        () => `attempt ${attempt} failed as ${classification} (${error.kind}: ${error.message}), expected ${expected}`,
      );
    }
    this.lastKind = error.kind;
    this.#failure = { event, durationMs };
    this.#decision = undefined;
  }

  #canceled({ attempt, durationMs }: Of<'attempt_canceled'>): void {
    // A stream that was given up after a value has shown that its tool works.
    const { as, earlierValues = 0 } = this.running?.behaviour ?? {};
    const running = this.#ends(
      durationMs,
      attempt,
      (as === 'observable' || as === 'iterable') && earlierValues > 0 ? 'success' : 'neutral',
    );
    this.#check(
      running?.signal === undefined || running.signal.aborted,
      'RSC-1',
      () => `attempt ${attempt} was canceled and its signal is not aborted`,
    );
    if (running?.signal !== undefined) this.#around.findings.saw('signal aborted in an attempt');
  }

  #rejected(event: Of<'rejected'>): void {
    // A retry that is not admitted was not made.
    this.#next = undefined;
    if (event.error.kind === 'invalid_parameters') this.#around.findings.saw('an input does not fit');
    this.begun ||= event.error.kind === 'circuit_open';
    if (event.error.kind === 'circuit_open') this.#around.breakerOf(this.tool, this.place)?.rejected();
    this.lastKind = event.error.kind;
    this.#failure = { event, durationMs: 0 };
    this.#decision = undefined;
  }

  #decided(event: Of<'decision'>): void {
    const { strategy, code, delayMs = 0 } = event;
    const { findings } = this.#around;
    const now = this.#around.now();
    const failure = this.#failure;
    // A cancel or a deadline from outside is decided about without a failure of an attempt.
    const { kind } = event.error;
    // A host that is asked about a call whose time is over can only give up.
    const decided = OUTER_CODES.has(code) || (code === 'guidance' && strategy === 'fail');
    if (kind === 'canceled' || kind === 'deadline_exceeded')
      return this.#check(
        this.running === undefined && decided,
        'RET-2',
        () => `${kind} was decided as ${strategy} (${code})`,
      );
    this.#decision = event;
    this.#check(
      this.running === undefined && failure !== undefined,
      'RET-2',
      () => `a decision (${strategy}) without a failure`,
    );
    if (failure === undefined) return;
    const { classification, error } = failure.event;
    const mayRepeat = error.uncertain !== true || isRetrySafe(this.tool, this.place.envelope);
    if (code === 'turn_deadline' && event.attempt > 0 && now < this.deadlineMs) findings.saw('deadline in a backoff');
    if (code === 'uncertain_mutation') findings.saw('uncertain mutation refused');
    if (code === 'budget_exhausted') findings.saw('retry budget refuses');
    this.#check(strategy !== 'alternative' || mayRepeat, 'RET-5', () => 'an alternative after an uncertain mutation');
    // Whoever left with this very event was not retried for.
    if (strategy !== 'retry' || event.seq >= this.goneSeq) return;
    this.#check(classification === 'transient', 'RET-3', () => 'a permanent failure is retried');
    this.#check(mayRepeat, 'RET-5', () => 'an uncertain mutation is retried');
    this.#check(
      error.retryAfterMs === undefined || error.retryAfterMs >= 0,
      'RET-3',
      () => 'a tool that asked not to be asked again is',
    );
    this.#check(
      error.retryAfterMs === undefined || delayMs >= error.retryAfterMs,
      'RET-2',
      () => `waits ${delayMs} ms, the server asked for ${error.retryAfterMs}`,
    );
    if (error.retryAfterMs !== undefined && error.retryAfterMs > 0 && delayMs === error.retryAfterMs)
      findings.saw('Retry-After is the wait');
    const [low, high] = delayInterval(this.tool.retry, this.own - 1, this.#previousTopMs);
    this.#previousTopMs = high;
    const topMs = Math.max(high, error.retryAfterMs ?? 0);
    // A host's own wait is the host's.
    this.#check(
      code === 'guidance' || (delayMs >= low - SLACK_MS && delayMs <= topMs + SLACK_MS),
      'RET-2',
      () => `waits ${delayMs} ms, the policy says ${low} to ${high}`,
    );
    this.#check(
      now + delayMs < this.deadlineMs,
      'DL-1',
      () => `a wait of ${delayMs} ms begins ${this.deadlineMs - now} ms before the deadline`,
    );
    const maxTotalMs = this.place.envelope?.maxElapsedMs ?? this.tool.retry.maxTotalTimeMs;
    this.#check(
      now + delayMs < this.#trialMs + maxTotalMs,
      'DL-1',
      () => `a wait of ${delayMs} ms begins at ${now - this.#trialMs} of ${maxTotalMs} ms`,
    );
    this.#around.retried(now);
    this.backsOffUntilMs = now + delayMs;
    this.#next = { attempt: this.attempts, delayMs, reasonCode: error.kind, latencyMs: failure.durationMs };
  }

  #alternative({ toolName, from }: Of<'alternative_used'>): void {
    const tool = this.#around.toolNamed(toolName);
    this.#check(
      this.#decision?.strategy === 'alternative' && this.running === undefined,
      'FB-1',
      () => `${toolName} is tried before ${from} had failed for good`,
    );
    this.#check(this.#around.now() < this.deadlineMs, 'FB-1', () => `${toolName} is tried after the deadline`);
    this.#check(!this.#triedTools.has(toolName) && tool !== undefined, 'FB-1', () => `${toolName} is tried twice`);
    this.#triedTools.add(toolName);
    if (tool !== undefined) this.tool = tool;
    this.own = 0;
    this.#trialMs = this.#around.now();
    this.#previousTopMs = undefined;
    this.backsOffUntilMs = undefined;
  }

  #settled({ result, toolName }: Of<'settled'>): void {
    const now = this.#around.now();
    this.settled = true;
    this.givesBack();
    this.backsOffUntilMs = undefined;
    this.#check(this.running === undefined, 'TRC-1', () => 'it settled while an attempt runs');
    this.#check(
      (result.status === 'success') === (this.succeeded !== undefined),
      'RES-3',
      () => `its status is ${result.status}`,
    );
    this.#check(
      (result.error === undefined) === (result.status === 'success'),
      'RES-3',
      () => `status ${result.status} with error ${result.error?.code}`,
    );
    this.#check(
      result.toolName === this.tool.name && toolName === this.tool.name,
      'FB-1',
      () => `its result names ${result.toolName}`,
    );
    this.#check(
      result.attempts === this.attempts,
      'TRC-2',
      () => `its result counts ${result.attempts} attempts of ${this.attempts}`,
    );
    this.#check(
      Math.abs(result.durationMs - (now - this.place.startedMs)) < SLACK_MS,
      'TRC-2',
      () => `its result says it took ${result.durationMs} ms`,
    );
    const told = result.retriedBy ?? [];
    this.#check(
      sameRecords(told, this.#records),
      'TRC-2',
      () => `its result tells of ${JSON.stringify(told)}, the trace of ${JSON.stringify(this.#records)}`,
    );
    if (this.attempts > 0 && result.status === 'success' && this.#triedTools.size > 1)
      this.#around.findings.saw('alternative answers');
    if (this.late) this.#around.findings.saw('detached call settles late');
    this.lastKind = result.error?.code ?? '';
  }
}
