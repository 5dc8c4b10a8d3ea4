import type { ToolResultEnvelope } from '../../../src/contract/envelope.ts';
import type { ToolEvent } from '../../../src/contract/event.ts';
import type { DedupeRecord } from '../../../src/contract/store.ts';
import type { Findings, InvariantId } from '../findings.ts';
import { contentOf, failureName, type Completion, type Excuse, type KeyWatch } from './key-watch.ts';
import type { Process } from './process.ts';
import type { KeyedCall, KeyedTool } from './scenario.ts';

/** A claim as its holder knows it: from when it was asked for, by the holder's clock, and for how long. */
interface Hold {
  /** The store's name of the key. */
  readonly storeKey: string;
  readonly version: number;
  sentMs: number;
}

/** What a tool answers with: whose execution it was. */
export interface Answer {
  readonly n: number;
  readonly attempt: number;
  readonly params: string;
  readonly tenant?: string | undefined;
  readonly session: string;
  /** What JSON must give back as it was. */
  readonly text: string;
}

/** Clocks here run apart by no more. */
const DRIFT = 0.02;
/** Their times are read to a thousandth. */
const SLACK_MS = 0.01;

/** How a call ends from outside. */
const OUTER_CODES: ReadonlySet<string> = new Set(['canceled', 'deadline_exceeded']);

export interface Around {
  readonly findings: Findings;
  /** The store's clock, how far it has run ahead by failovers, which take their time, and what it holds. */
  readonly storeMs: number;
  readonly storeAheadMs: number;
  peek(storeKey: string): DedupeRecord | undefined;
}

/** One call under a key, from its first event to its last. */
export class CallWatch {
  readonly callId: string;
  readonly call: KeyedCall;
  readonly tool: KeyedTool;
  readonly key: KeyWatch;
  readonly process: Process;
  readonly deadlineMs: number;
  hold: Hold | undefined;
  /** `own` counts the attempts at the present tool. */
  running: { readonly attempt: number; readonly own: number; readonly startedMs: number } | undefined;
  attempts = 0;
  settled = false;
  abandoned = false;
  waiting = false;
  claimed = false;
  /** Its turn has settled without it. */
  detached = false;
  /** The store took its outcome. */
  wrote = false;
  /** It said that nothing protects it. */
  unprotected = false;
  succeeded: Answer | undefined;
  /** The tool that is tried: its own, or an alternative. */
  #acting: KeyedTool;
  #attemptsBefore = 0;
  readonly #around: Around;
  readonly #promised: Completion | undefined;
  readonly #startedMs: number;

  constructor(callId: string, call: KeyedCall, tool: KeyedTool, key: KeyWatch, process: Process, around: Around) {
    this.callId = callId;
    this.call = call;
    this.tool = tool;
    this.#acting = tool;
    this.key = key;
    this.process = process;
    this.#around = around;
    this.#promised = key.completed;
    this.#startedMs = process.now();
    this.deadlineMs = call.deadlineInMs === undefined ? Infinity : this.#startedMs + call.deadlineInMs;
  }

  get ended(): boolean {
    return this.settled || this.abandoned;
  }

  /** The store may have lost its claim. */
  get forgotten(): boolean {
    return (this.hold?.version ?? Infinity) <= this.key.forgottenUpTo;
  }

  /** Whether its lease is valid by its own clock, less `share` of it and what that clock is behind. */
  holds(share: number, behindMs: number = 0): boolean {
    if (this.hold === undefined) return false;
    return this.process.now() + behindMs < this.hold.sentMs + this.tool.leaseMs * (1 - share) + SLACK_MS;
  }

  #check(holds: boolean, invariant: InvariantId, message: () => string): void {
    this.#around.findings.check(holds, invariant, () => `call ${this.call.n} (${this.key.name}): ${message()}`);
  }

  event(event: ToolEvent): void {
    const { findings } = this.#around;
    this.#check(!this.ended || event.late === true, 'TRC-1', () => `${event.type} after its result`);
    if (event.late === true && !this.ended) this.detached = true;
    if (event.late === true && this.ended && event.type === 'attempt_succeeded')
      findings.saw('leader goes on for others');
    switch (event.type) {
      case 'attempt_started':
        return this.#started(event.attempt);
      case 'attempt_succeeded':
      case 'attempt_failed':
      case 'attempt_canceled':
        this.#check(
          this.running?.attempt === event.attempt,
          'TRC-1',
          () => `${event.type} of attempt ${event.attempt}, which does not run`,
        );
        this.running = undefined;
        return undefined;
      case 'dedupe':
        return this.#keyed(event);
      case 'rejected':
        if (event.error.kind === 'circuit_open') findings.saw('breaker refuses a call that holds its key');
        return undefined;
      case 'decision':
        if (event.code === 'budget_exhausted') findings.saw('budget refuses a retry under a key');
        return undefined;
      case 'settled':
        this.#check(!this.settled, 'RES-1', () => 'it settles twice');
        // Whose caller goes may run on for others that wait, and has settled.
        this.#check(
          this.running === undefined || OUTER_CODES.has(event.result.error?.code ?? ''),
          'TRC-1',
          () => 'it settles while an attempt runs',
        );
        this.settled = true;
        return this.#result(event.result);
      case 'abandoned':
        this.#check(!this.ended, 'TRC-1', () => 'it is abandoned after its end');
        this.abandoned = true;
        return undefined;
      default:
        return undefined;
    }
  }

  /** An alternative is tried, under the same key. */
  passesTo(tool: KeyedTool | undefined): void {
    this.#check(this.running === undefined, 'FB-1', () => `${tool?.name} is tried while ${this.#acting.name} runs`);
    this.#around.findings.saw('alternative under a key');
    if (tool !== undefined) this.#acting = tool;
    this.#attemptsBefore = this.attempts;
  }

  #started(attempt: number): void {
    const { key, process, hold } = this;
    this.attempts++;
    if (this.call.needs !== undefined) this.#around.findings.saw('call that needed another, under a key');
    this.#check(
      attempt === this.attempts && this.running === undefined,
      'TRC-1',
      () => `attempt ${attempt} starts as the ${this.attempts}th`,
    );
    this.running = { attempt, own: attempt - this.#attemptsBefore, startedMs: process.now() };
    if (this.unprotected) return;
    this.#check(this.holds(DRIFT), 'IDEM-2', () =>
      hold === undefined
        ? `attempt ${attempt} starts without a lease`
        : `attempt ${attempt} starts ${process.now() - hold.sentMs} ms into a lease of ${this.tool.leaseMs}`,
    );
    this.#holdsInStore('IDEM-2', () => `attempt ${attempt} starts`);
    if (this.forgotten) return;
    for (const other of key.calls) {
      if (other === this || other.running === undefined || other.unprotected || other.forgotten) continue;
      if (!other.holds(DRIFT, this.#around.storeAheadMs)) continue;
      this.#check(
        false,
        'IDEM-1',
        () =>
          `attempt ${attempt} starts while attempt ${other.running?.attempt} of call ${other.call.n} runs with a valid lease`,
      );
    }
  }

  /** By the store's own clock and word, unless it has forgotten. */
  #holdsInStore(invariant: 'IDEM-2' | 'TO-1', what: () => string): void {
    const { hold } = this;
    if (hold === undefined || this.forgotten) return;
    const record = this.#around.peek(hold.storeKey);
    const leftMs = (record?.lockUntilMs ?? -Infinity) - this.#around.storeMs;
    const valid = record?.version === hold.version && record.state === 'inflight' && leftMs > 0;
    this.#check(
      valid,
      invariant,
      () => `${what()} under ${hold.version}, the store has ${record?.version} (${record?.state}, ${leftMs} ms left)`,
    );
  }

  #keyed({ step, fence }: Extract<ToolEvent, { type: 'dedupe' }>): void {
    const { findings } = this.#around;
    if (step === 'claimed' || step === 'taken_over') {
      this.claimed = true;
      this.#check(
        fence === this.hold?.version,
        'TRC-2',
        () => `it tells of fence ${fence}, the store gave ${this.hold?.version}`,
      );
    }
    this.waiting = step === 'waiting';
    if (step === 'taken_over') findings.saw('takeover');
    if (step === 'conflict') findings.saw('conflict');
    if (step === 'busy') findings.saw('busy');
    if (step === 'lease_lost' && this.running !== undefined) findings.saw('lease lost in an attempt');
    if (step === 'unrecorded' && this.succeeded !== undefined) findings.saw('success that is not recorded');
    if (step === 'unprotected') {
      findings.saw('runs unprotected');
      this.unprotected = true;
    }
    if (
      step === 'lease_lost' ||
      step === 'superseded' ||
      step === 'taken_over' ||
      step === 'unrecorded' ||
      step === 'unprotected'
    )
      this.#excuse(step);
  }

  #excuse(why: Excuse['why']): void {
    this.key.excuses.push({ why, n: this.call.n, fence: this.unprotected ? 0 : (this.hold?.version ?? 0) });
  }

  /** As the trace has it: without its output. */
  #result({ error, fromCache, attempts, status, durationMs, toolName }: ToolResultEnvelope): void {
    const { findings } = this.#around;
    this.#check(
      attempts === this.attempts,
      'TRC-2',
      () => `its result counts ${attempts} attempts of ${this.attempts}`,
    );
    // Having it recorded is not counted.
    this.#check(
      durationMs >= 0 && durationMs <= this.process.now() - this.#startedMs + SLACK_MS,
      'TRC-2',
      () => `its result says it took ${durationMs} ms`,
    );
    this.#check(
      (error === undefined) === (status === 'success'),
      'RES-3',
      () => `status ${status} with error ${error?.code}`,
    );
    if (error?.uncertain === true) this.#excuse('uncertain');
    if (fromCache && toolName !== this.tool.name) findings.saw('alternative is replayed');
    if (fromCache)
      findings.saw(
        attempts > 0
          ? 'overtaken call gets the other’s result'
          : error === undefined
            ? 'replay of a result'
            : 'replay of a failure',
      );
    if (error?.code === 'deadline_exceeded' && !this.claimed) findings.saw('deadline in a claim');
    if (error?.code === 'duplicate_in_flight' && error.terminal) findings.saw('never twice');
    if (error?.code !== 'conflict') return;
    this.#check(
      this.key.calls.some(({ call }) => call.params !== this.call.params),
      'IDEM-7',
      () => 'a conflict, and nobody asked for anything else under this key',
    );
  }

  /** What its caller is told, output and all. */
  told(result: ToolResultEnvelope): void {
    const { status, output, fromCache, error } = result;
    const { call, tool, key } = this;
    // Whatever a tool answers or throws says whose it is.
    const content = output?.content as Answer | undefined;
    const whose =
      content ?? (error?.message.startsWith('{') === true ? (JSON.parse(error.message) as Answer) : undefined);
    if (whose !== undefined) {
      this.#check(
        whose.params === call.params,
        'IDEM-7',
        () => `asked for ${call.params}, it gets ${JSON.stringify(whose)}`,
      );
      this.#check(
        whose.tenant === call.tenant && (tool.scope === 'global' || whose.session === call.session),
        'IDEM-8',
        () => `it gets another’s ${JSON.stringify(whose)}`,
      );
    }
    if (fromCache && error !== undefined)
      this.#check(
        key.failures.has(failureName(error)),
        'IDEM-4',
        () => `it gives the failure ${error.code}: ${error.message}, which nobody wrote`,
      );
    if (status !== 'success') return;
    const given = JSON.stringify(content);
    if (!fromCache)
      this.#check(
        given === JSON.stringify(this.succeeded),
        'RES-3',
        () => `it gives ${given}, its tool gave ${JSON.stringify(this.succeeded)}`,
      );
    else this.#check(key.contents.has(given), 'IDEM-4', () => `it gives ${given}, which nobody wrote`);
    const promised = this.#promised;
    if (
      promised === undefined ||
      key.completed !== promised ||
      promised.expiresAtMs <= this.#around.storeMs ||
      this.unprotected
    )
      return;
    this.#check(
      fromCache && given === contentOf(promised.payload ?? 'null'),
      'IDEM-4',
      () => `it gives ${given}, although ${promised.payload} was acknowledged before it began`,
    );
    this.#check(
      this.attempts === 0,
      'IDEM-4',
      () => `it makes ${this.attempts} attempts, although ${promised.payload} was acknowledged before it began`,
    );
  }

  /** Virtual time is about to go on, and its process is awake: what had to end by now has ended. */
  leaving(): void {
    const { running, process, tool, hold } = this;
    const { timeoutMs } = this.#acting;
    const now = process.now() - SLACK_MS;
    if (running !== undefined) {
      this.#check(
        now < running.startedMs + timeoutMs,
        'TO-1',
        () => `attempt ${running.attempt} runs ${now - running.startedMs} of ${timeoutMs} ms`,
      );
      if (!this.unprotected) {
        this.#check(
          hold !== undefined && now < hold.sentMs + tool.leaseMs,
          'TO-1',
          () =>
            `attempt ${running.attempt} outlives its lease, which was asked for ${now - (hold?.sentMs ?? 0)} ms ago`,
        );
        this.#holdsInStore('TO-1', () => `attempt ${running.attempt} runs on`);
      }
    }
    this.#check(this.ended || now < this.deadlineMs, 'DL-1', () => 'it has not settled by its deadline');
  }
}
