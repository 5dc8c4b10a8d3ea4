import type { Classification } from './error-kind.ts';
import type { ApprovalWhen } from './gate/approval.ts';
import type { CompensatePolicy } from './settle/compensate.ts';
import type { VerifyPolicy } from './settle/verify.ts';

/**
 * How long to wait before each retry, and when to stop. Units are milliseconds; `maxAttempts` counts the first.
 */
export interface RetryPolicy {
  /**
   * How delays grow. `full_jitter` draws from 0 up to the exponential delay; `decorrelated` from `initialDelayMs` to
   * three times the last one. Interactive: `exponential`; resilient: `full_jitter`.
   */
  readonly strategy: 'exponential' | 'full_jitter' | 'decorrelated' | 'constant';
  /** The delay before the first retry, before jitter. Interactive: 100 (SI 2.1); resilient: 200 (CLAW 1.4). */
  readonly initialDelayMs: number;
  /** The cap on a delay, before jitter. Interactive: 800 (SI 2.1); resilient: 4,000 (CLAW 1.4). */
  readonly maxDelayMs: number;
  /** What a delay grows by from one retry to the next, 1 to 1,000. Default 2 in both profiles. */
  readonly multiplier: number;
  /** Spread around an `exponential` or `constant` delay: 10 means 90 % to 110 %. Interactive: 10; resilient: 0. */
  readonly jitterPercent: number;
  /** Attempts in all, the first included: 1 to 1,000,000. Interactive: 5 (SI 2.1); resilient: 4 (CLAW 1.4). */
  readonly maxAttempts: number;
  /** No attempt starts this long after the first one did, or later. Interactive: 2,000 (SI 2.1); resilient: 30,000. */
  readonly maxTotalTimeMs: number;
}

/** When a circuit breaker opens, how it recovers. Either opening rule is off with `Infinity`. */
export interface BreakerOptions {
  /** Consecutive failures that open it. Default 5 (SI 3.2). */
  readonly failureThreshold?: number;
  /** Share of failures among the last outcomes that opens it, in (0, 1]. Default 0.5 (CLAW 1.5). */
  readonly failureRate?: number;
  /** How many of the last outcomes the rate looks at. Default 20 (CLAW 1.5). */
  readonly windowSize?: number;
  /** Outcomes older than so many milliseconds count for neither rule. Default 120,000 (CLAW 1.5). */
  readonly windowMs?: number;
  /** Outcomes the rate needs before it can open. Default 10 (CLAW 1.5), or `windowSize` if that is less. */
  readonly minimumCalls?: number;
  /** How long it stays open, in milliseconds. Default 30,000 (SI 3.2). */
  readonly cooldownMs?: number;
  /** The cooldown grows by this each time a probe fails. Default 1. */
  readonly cooldownMultiplier?: number;
  /**
   * The longest that it stays open, a server's `Retry-After` included. Default 300,000, or `cooldownMs` if that is
   * more.
   */
  readonly cooldownMaxMs?: number;
  /** Calls admitted at a time while half-open. Default 1 (CLAW 1.5). */
  readonly probes?: number;
  /** Consecutive good probes that close it. Default 2 (SI 3.2). */
  readonly successThreshold?: number;
  /**
   * How long a half-open breaker waits for its probes before it revokes them and opens: since the last one was
   * admitted, or gave a value. Default the greater of `cooldownMs` and 60,000.
   */
  readonly halfOpenTimeoutMs?: number;
  /** After closing, admits a growing share of calls over so many milliseconds. Default 0: all at once. */
  readonly rampMs?: number;
  /**
   * Successes that take more milliseconds count as failures for the rate, and as bad probes. Default `Infinity`: none.
   */
  readonly slowCallMs?: number;
  /** The state that the breaker begins in. Default `closed`. */
  readonly initialState?: 'closed' | 'forced_open' | 'disabled';
}

/**
 * Retries that a whole layer may make: at most `ratio` of the calls started in the window, plus `minPerSecond`.
 */
export interface RetryBudgetOptions {
  /** Retries allowed for each call started in the window, 0 to 1,000. Default 0.2, as Finagle and Linkerd have it. */
  readonly ratio?: number;
  /** Retries allowed beside those, for each second of the window. Default 10, as Finagle and Linkerd have it. */
  readonly minPerSecond?: number;
  /** How far back calls and retries are counted, 1 to 3,600,000 ms. Default 10,000. */
  readonly windowMs?: number;
}

/** `{ "503": "permanent" }`: a status, code or kind, and the class it gets for this tool. */
export type ClassificationOverrides = Readonly<Record<string, Classification>>;

/**
 * What a tool does to the world. A mutating tool is not retried, nor replaced by another, when it may have taken
 * effect: after a timeout, a lost connection, a bare throw, a status of 500, 502 or 504. What proves that
 * nothing was done is a status below 500 or a 503, a code that says so, or a `ToolExecutionError` of the tool's own,
 * with `executed: false` where its kind does not say it.
 */
export type Effects = 'read' | 'mutating';

/** How the results of a tool are remembered under their keys. */
export interface DedupePolicy {
  /**
   * `session` (default): the same call of another session or actor is another call. `global`: shared by all of a
   * tenant; read-only tools only.
   */
  readonly scope?: 'session' | 'global';
  /**
   * Fields of the input, at its top level, that say nothing about what is asked, beside `clientTs`, `retryCount` and
   * `traceparent`.
   */
  readonly volatile?: readonly string[];
  /** `verbatim` (default). `collapse`: strings that differ in white space only are equal. */
  readonly whitespace?: 'verbatim' | 'collapse';
  /** How long a result is kept, in milliseconds. Default 86,400,000: a day (CLAW 1.3). */
  readonly doneTtlMs?: number;
  /** How long a failure is kept, in milliseconds. Default 300,000 (CLAW 1.3). */
  readonly failedTtlMs?: number;
  /**
   * How long a claim holds without being renewed, in milliseconds; it is, every third of it. Default 120,000 (CLAW
   * 1.3).
   */
  readonly leaseMs?: number;
}

/** `on`; `shadow`: decides and records, changes nothing; `off`: straight through to the tool. */
export type Mode = 'on' | 'shadow' | 'off';

/** How one tool's calls are guarded. What is left out comes from the layer's defaults, then its profile. */
export interface ToolPolicy {
  /** Hard limit on one attempt, in milliseconds from its start. Default 30,000 (SI 4.1). A timeout is `uncertain`. */
  readonly timeoutMs?: number;
  /** An attempt that reports no progress for so many milliseconds times out. Off by default. */
  readonly idleTimeoutMs?: number;
  /** How failed attempts are repeated. What is left out comes from the layer's profile. */
  readonly retry?: Partial<RetryPolicy>;
  /** `false`: no breaker. */
  readonly breaker?: BreakerOptions | false;
  /** Tools to try, in order, when this one fails for good. They get the same input. */
  readonly alternatives?: readonly string[];
  /**
   * Default: `read` for a `tool()`, which `spillway.warnings` says, but `mutating` for one with a `verify` or
   * `compensate`; `mutating`
   * for a foreign tool, of MCP or a framework; by its method for one of REST.
   */
  readonly effects?: Effects;
  /** Classes for statuses, codes or kinds that differ from the rules. Default: none. */
  readonly classification?: ClassificationOverrides;
  /**
   * The resource checks the call's key, so that a repeated effect is refused there: uncertain failures may be retried.
   */
  readonly enforcesKey?: boolean;
  /**
   * What one call costs, in the host's own unit; guidance can ask for it, and a `budget` counts it as US dollars.
   * Default 0.
   */
  readonly cost?: number;
  /**
   * `true`: a person has to approve each call, for tools that are not yours to write; or which calls, as data. A tool's
   * own `needsApproval` is asked besides. Default: as the tool itself says.
   */
  readonly needsApproval?: boolean | ApprovalWhen;
  /** Never retry an uncertain failure of a mutating tool, whatever else allows it, an `errorHandler` included. */
  readonly safetyCritical?: boolean;
  /**
   * How it is found out whether an uncertain call took effect: limits of the tool's own `verify`, or, with `tool`,
   * another tool that looks. Default: an uncertain call stays so.
   */
  readonly verify?: VerifyPolicy;
  /**
   * How what its calls did is undone when their turn fails: limits of the tool's own `compensate`, or, with `tool`,
   * another tool that undoes. `false`: there is nothing to undo. Default: what a mutating tool did stays, and the turn
   * says so.
   */
  readonly compensate?: CompensatePolicy | false;
  /** How results are remembered under their keys; see `DedupePolicy` for each default. */
  readonly dedupe?: DedupePolicy;
  /** Per-tool staging of a rollout. By default the layer's own mode; the more cautious of both counts. */
  readonly mode?: Mode;
  /**
   * `errors`: what the tool itself says of a failure is shown to the model after the sentence of ours, without what
   * looks like a secret, cut after 1,000 characters and marked as the tool's. By default none of it is.
   */
  readonly show?: 'errors';
}

/** `interactive`: quick, for a person who waits. `resilient`: patient, for work in the background. */
export type ProfileName = 'interactive' | 'resilient';
