import type { BreakerStateName } from '../breaker-state.ts';
import type {
  BreakerOptions,
  ClassificationOverrides,
  DedupePolicy,
  Effects,
  Mode,
  RetryBudgetOptions,
  RetryPolicy,
} from '../policy.ts';
import type { BudgetEvent } from './gate.ts';
import type { EventHeader } from './header.ts';

interface LayerHeader extends EventHeader {
  /** Tells these events from those of calls and turns. */
  readonly source: 'layer';
}

/** A policy with every part decided: by the tool, the layer's defaults and its profile. */
export interface PolicyInForce {
  /** Hard limit on one attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** The limit on an attempt that makes no progress, if it has one. */
  readonly idleTimeoutMs?: number;
  /** Delays, attempts and total time. */
  readonly retry: RetryPolicy;
  /** Every option but those that are off: they are `Infinity`, which JSON has no word for. Absent without a breaker. */
  readonly breaker?: BreakerOptions;
  /** Tools to try when this one fails for good, in order. */
  readonly alternatives: readonly string[];
  /** Classes that the tool gives to statuses, codes and kinds. */
  readonly classification: ClassificationOverrides;
  /** Whether the resource checks the call's key. */
  readonly enforcesKey: boolean;
  /** Whether an uncertain failure is never retried, whatever else allows it. */
  readonly safetyCritical: boolean;
  /** What one call costs, in the host's own unit. */
  readonly cost: number;
  /** How results are remembered under their keys. */
  readonly dedupe: Required<DedupePolicy>;
}

/** A tool as its calls run. */
export interface ToolInForce {
  /** The tool's name. */
  readonly name: string;
  /** What it does to the world, as declared or presumed. */
  readonly effects: Effects;
  /** Its `effects` are presumed: neither it, nor its server, nor the layer's defaults say anything of them. */
  readonly presumed?: true;
  /** As the switches stand. */
  readonly mode: Mode;
  /** How its calls are guarded. */
  readonly policy: PolicyInForce;
  /** The name of its breaker, as `breaker_changed.toolName` has it; absent when it has none. */
  readonly breakerKey?: string;
  /** The name of what it depends on, where it says so. */
  readonly dependency?: string;
}

/**
 * What decides in a layer beside its policies, and is no part of a trace: who replays one cannot know what it would
 * have said.
 */
export type HostPart = 'hooks' | 'errorHandler' | 'guidance' | 'experience' | 'approvals' | 'budget' | 'sharedBreakers';

/** What concerns no single call. */
export type LayerEvent = LayerHeader &
  (
    | BudgetEvent
    | {
        /**
         * The first event that each subscriber of a trace gets, it alone, when it subscribes, however late that is: the
         * policies in force. Its `seq` is that of the event before it.
         */
        readonly type: 'layer_started';
        /** The package's. */
        readonly version: string;
        /**
         * Those that the layer and its providers have at that moment; one that a call or a plan brings along is not
         * among them.
         */
        readonly tools: readonly ToolInForce[];
        /** The retries that all calls share; absent where there is no limit. */
        readonly retryBudget?: Required<RetryBudgetOptions>;
        /**
         * What of the host's decides beside the policies; empty where they alone do, absent in a trace of a version
         * that did not tell it.
         */
        readonly host?: readonly HostPart[];
        /**
         * Not from the layer: `ndjsonSink` tells it once more at the head of a new file, with the tools that it has
         * heard of since, and the `seq` and `atMs` of the event before it.
         */
        readonly again?: true;
      }
    | {
        /** When a breaker's state has changed, after the state stands. */
        readonly type: 'breaker_changed';
        /** The name of the breaker: its tool's, or what `breakerKey` made of it. */
        readonly toolName: string;
        /** The state it left. */
        readonly from: BreakerStateName;
        /** The state it is in. */
        readonly to: BreakerStateName;
        /** The tenant; empty without one. */
        readonly scope: string;
        /** `Circuit breaker opened for <tool>`, or what else became of it. */
        readonly message: string;
        /** With `open`: when it lets a probe through, on the clock of `atMs`. */
        readonly untilMs?: number;
        /** The call whose attempt or admission brought it about; absent where time, an order or another process did. */
        readonly callId?: string;
        /** An order given in this process brought it about: `force_open`, `reset` or `disable`. */
        readonly ordered?: true;
      }
    | {
        /**
         * When an order reset a breaker that was closed: it is so still, and has forgotten what it had counted. The
         * reset of any other one is a `breaker_changed`.
         */
        readonly type: 'breaker_reset';
        /** The name of the breaker. */
        readonly toolName: string;
        /** The tenant; empty without one. */
        readonly scope: string;
      }
    | {
        /** When a breaker was forgotten to make room for another (`maxBreakers`). */
        readonly type: 'breaker_evicted';
        /** The name of the breaker. */
        readonly toolName: string;
        /** The tenant; empty without one. */
        readonly scope: string;
      }
    | {
        /** When the store stopped or started to answer, is full, or keeps less than it should. */
        readonly type: 'store_changed';
        /** `weak`: its settings lose what it acknowledged. */
        readonly state: 'lost' | 'back' | 'full' | 'weak';
        /** The same as a sentence, with the reason. */
        readonly message: string;
      }
  );
