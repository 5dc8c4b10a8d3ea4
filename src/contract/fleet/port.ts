import type { Observable } from 'rxjs';
import type { TraceEvent, TurnEvent } from '../event.ts';
import type { TraceContext } from '../event/trace-context.ts';
import type { TurnJournal } from './journal.ts';
import type { PlanNode, PlanOptions } from '../turn.ts';

/** A plan as an engine is given it: what `plan()` and `plan.from()` make. */
export interface FleetPlan {
  /** The nodes, in the order in which they were given. */
  readonly nodes: readonly PlanNode[];
  /** How long the turn may take, and how it runs. */
  readonly options: PlanOptions;
}

/** Whose turn it is. */
export interface SubmitOptions {
  /** Whose turn it is: part of every call's idempotency key. Default: nobody's. */
  readonly session?: string;
  /** The user or service: part of every computed key, and given to hooks. Default: nobody. */
  readonly actor?: string;
  /** The tenant: part of every call's key; the turns of tenants take turns at the workers. Default: none. */
  readonly tenant?: string;
  /** The W3C trace context that the turn is part of, wherever it runs. No part of what the plan is known by. */
  readonly traceContext?: TraceContext;
}

/** A turn that an engine has taken: from now on it settles, whatever dies. */
export interface Submitted {
  /** The turn's id. */
  readonly turnId: string;
  /** `accepted`: it is new. `known`: the same plan had been submitted under this id. */
  readonly state: 'accepted' | 'known';
  /** When it settles at the latest, in milliseconds since the Unix epoch by the engine's clock. */
  readonly deadlineAtMs: number;
}

/** What a worker runs turns with: of a layer, what it takes to run one. */
export interface FleetLayer {
  /** As `Spillway.turn`. */
  turn(
    plan: FleetPlan & {
      /** By node: the places of its needs. */
      readonly needs: ReadonlyArray<readonly number[]>;
      /** By node: the places of those that need it. */
      readonly dependents: ReadonlyArray<readonly number[]>;
    },
    options: SubmitOptions & {
      /** Where it is kept what the turn came to. */
      readonly journal: TurnJournal;
      /** Aborting it cancels the turn. */
      readonly signal: AbortSignal;
    },
  ): Observable<TurnEvent>;
  /** As `Spillway.tools`. */
  readonly tools: ReadonlyArray<{
    /** What plans name the tool by. */
    readonly name: string;
  }>;
  /** As `Spillway.inspect`. */
  inspect(): Promise<{
    /** The tools, and the modes that their calls run in. */
    readonly tools?: ReadonlyArray<{
      /** The tool's name. */
      readonly name: string;
      /** The mode; a fleet needs `on`. */
      readonly mode: string;
    }>;
    /** Absent without a store, or when it would not answer. */
    readonly store?: {
      /** The store's name for itself. */
      readonly kind: string;
      /** Whether all workers can share it. */
      readonly shared: boolean;
    };
  }>;
}

/** What a worker serves. */
export interface FleetTurns {
  /** A layer with a store that all workers share, such as `redisStore`; its tools are the ones that turns can name. */
  readonly layer: FleetLayer;
  /**
   * The version of the worker's tools. A turn is finished by the version that began it, or refused by name once no
   * worker of that version is left. Default `0`.
   */
  readonly version?: string;
  /** The worker's name in the trace and in `health()`, 1 to 128 characters. Default: a new id. */
  readonly worker?: string;
  /** Turns that it runs at a time, 1 to 10,000. Default 10. */
  readonly concurrency?: number;
  /** How long `close()` waits for nodes that run, in milliseconds, before it hands their turns over. Default 10,000. */
  readonly drainMs?: number;
}

/** A worker that serves. */
export interface Closeable {
  /** Resolves once it takes turns; rejects where it cannot, with the reason. */
  readonly ready: Promise<void>;
  /**
   * Takes no new turn, lets running nodes end for `drainMs`, and hands their turns over. Resolves then. Idempotent.
   */
  close(): Promise<void>;
}

/** A worker, as the fleet knows it. */
export interface WorkerReport {
  /** Its name. */
  readonly worker: string;
  /** The version of its tools. */
  readonly version: string;
  /** How many turns it runs. */
  readonly turns: number;
  /** Milliseconds since its last sign of life. */
  readonly silentMs: number;
}

/** How a fleet stands. */
export interface FleetHealth {
  /** The engine's name, such as `bullmq`. */
  readonly engine: string;
  /** Workers with a sign of life in the last 30 s. */
  readonly workers: readonly WorkerReport[];
  /** Turns that no worker has begun. */
  readonly waiting: number;
  /** Turns that were begun and have not settled. */
  readonly running: number;
  /** How long the oldest waiting turn has waited, in milliseconds; 0 when none waits. */
  readonly lagMs: number;
  /** Turns that should have settled by now: their deadline passed more than 10 s ago. At most 100 of them. */
  readonly stuck: ReadonlyArray<{
    /** The turn's id. */
    readonly turnId: string;
    /** Milliseconds since its deadline. */
    readonly overdueMs: number;
  }>;
}

/**
 * Where turns go that outlive their process: the port that `spillway/fleet/bullmq` and any other engine fill.
 * `fleetConformance` of `spillway/testing` says what one must do.
 */
export interface FleetEngine {
  /** Runs turns here from now on. */
  serve(turns: FleetTurns): Closeable;
  /**
   * Hands a plan over. Resolves once it is durable.
   *
   * Rejects with a `DurablePlanError` for a plan that is not data, and with a `ToolExecutionError`: `conflict` when the
   * id stands for another plan, `limit_exceeded` with `retryAfterMs` when the queue is full, `store_unavailable` when
   * the engine gives no answer.
   */
  submit(turnId: string, plan: FleetPlan, options?: SubmitOptions): Promise<Submitted>;
  /**
   * Every event of a turn, once, in order, from its first on, however late this is asked; `seq` counts them within the
   * turn. Completes after `settled`, which has the turn's whole result. Errors for a turn that is not there.
   */
  attach(turnId: string): Observable<TraceEvent>;
  /** Cancels a turn; gives `false` when it has settled, or is not there. */
  cancel(turnId: string): Promise<boolean>;
  /** Says how the fleet stands. */
  health(): Promise<FleetHealth>;
  /** Ends the engine's own connections, not those it was given. Workers are closed first. Idempotent. */
  close(): Promise<void>;
}
