import type { PolicyFile } from './policy-file.ts';

/**
 * How long a piece of a server's work takes: always the same, lognormal, drawn from values, or from the attempts of a
 * tool in a trace.
 */
export type LatencyEntry =
  | {
      /** The time of every piece of work, in milliseconds. */
      constant_ms: number;
    }
  | {
      /** The median of a lognormal distribution. */
      median_ms: number;
      /** Its 99th percentile. */
      p99_ms: number;
    }
  | {
      /** Times to draw from, each as likely as the others. */
      values_ms: number[];
    }
  | {
      /** A trace file, from the folder of the scenario; the command reads it, `simulate` does not. */
      trace: string;
      /** The tool whose successful attempts are drawn from. */
      tool: string;
    };

/** A span of the scenario in which something is otherwise. */
export interface SpanEntry {
  /** When it begins, in seconds from the start. */
  from_s: number;
  /** When it ends. */
  to_s: number;
}

/** How much of a server's work fails, and how. */
export interface ErrorsEntry {
  /** The share that fails, 0 to 1. */
  rate: number;
  /** The HTTP status of the failure. Default 503. */
  status?: number;
  /** What the failure asks to wait. Default: nothing. */
  retry_after_ms?: number;
}

/** A span with another share of errors. */
export interface ErrorSpanEntry extends SpanEntry {
  /** The share that fails, 0 to 1. */
  rate: number;
}

/** A span in which something is so many times what it is else. */
export interface FactorSpanEntry extends SpanEntry {
  /** How many times. */
  factor: number;
}

/** A server that does work with so many workers and a queue. */
export interface QueueServerEntry {
  /** How long a piece of work takes. */
  latency: LatencyEntry;
  /** How much it does at a time. Default: no limit. */
  workers?: number;
  /** How much may wait; more is refused with status 503. Default: no limit. */
  queue?: number;
  /** What fails of its work. Default: nothing. */
  errors?: ErrorsEntry;
  /** Spans with another share of errors. */
  bursts?: ErrorSpanEntry[];
  /** Bad weather that it shares with other servers. Default: none. */
  weather?: string;
  /** The share of errors in bad weather. Default 1. */
  weather_rate?: number;
  /** Spans in which it works at a part of its speed, `factor`; at 0 all waits. */
  dips?: FactorSpanEntry[];
  /** Spans in which requests are lost. */
  outages?: SpanEntry[];
  /** The share of work that is done and whose answer is lost. Default 0. */
  lost_answers?: number;
  /** What becomes of work that nobody waits for any more. Default `finish`: it is done all the same. */
  on_abandon?: 'finish' | 'drop';
}

/** A time of a normal distribution, its sign left out. */
export interface NormalEntry {
  /** The mean, in milliseconds. */
  mean: number;
  /** The standard deviation, in milliseconds. */
  sd: number;
}

/** A row that is read, and written if nobody has written it since: contention, as AWS modelled it. */
export interface RowServerEntry {
  /** What the row is reached over. */
  row: {
    /** The time of each message. */
    network_ms: NormalEntry;
  };
}

/** Clients that ask whatever became of those before them. */
export interface PoissonEntry {
  /** How many ask a second, on average. */
  rate_per_s: number;
  /** Spans with so many times as many. */
  surges?: FactorSpanEntry[];
}

/** Clients of which each asks again a while after its answer. */
export interface ClosedEntry {
  /** How many there are. */
  users: number;
  /** How long each waits before it asks again, on average; above 0, so that time goes on. */
  think_ms: number;
}

/** Clients that all ask at once. */
export interface BurstEntry {
  /** How many. */
  count: number;
  /** When, in seconds. Default 0. */
  at_s?: number;
  /** Again after so many seconds. Default: once. */
  every_s?: number;
}

/** What clients ask for: a tool, by default the first one, or a plan. */
export interface AskedEntry {
  /** The tool. */
  tool?: string;
  /** The plan. */
  plan?: string;
}

/** Who asks, and for what. */
export type ClientsEntry = AskedEntry &
  (
    | {
        /** An open stream of clients. */
        poisson: PoissonEntry;
      }
    | {
        /** So many clients. */
        closed: ClosedEntry;
      }
    | {
        /** All at once. */
        burst: BurstEntry;
      }
  );

/** A tool, and the server that it asks. */
export interface ScenarioToolEntry {
  /** The server's name. */
  server: string;
  /** What it really does, whatever a policy says. Default `read`. */
  effects?: 'read' | 'mutating';
  /** Its resource acts once for a key, where the policy's `enforces_key` hands it over. Default false. */
  keeps_keys?: boolean;
}

/** A call inside a plan. */
export interface ScenarioNodeEntry {
  /** Its name in the plan. */
  id: string;
  /** The tool that it calls. */
  tool: string;
  /** Nodes that must have succeeded before. */
  needs?: string[];
  /** The turn can do without it. Default false. */
  optional?: boolean;
}

/** A turn that clients ask for. */
export interface ScenarioPlanEntry {
  /** When it ends at the latest. Default 300,000. */
  timeout_ms?: number;
  /** Its calls. */
  nodes: ScenarioNodeEntry[];
}

/** What must hold of a policy, over all seeds: of means, but for effects and recovery, which hold in each. */
export interface ExpectEntry {
  /** The least share of successes. */
  success?: number;
  /** The most load at its peak, in times of the calls at theirs. */
  load?: number;
  /** The most seconds from the end of the trouble until calls succeed again. */
  recovery_s?: number;
  /** How often one call may take effect at the most. */
  effects?: number;
  /** The longest that 99 % of the calls may take. */
  p99_ms?: number;
  /** The most attempts a call, on average. */
  attempts?: number;
}

/** Weather that servers share. */
export interface WeatherEntry {
  /** How long it is good, on average. */
  every_s: number;
  /** How long it is bad, on average. */
  for_s: number;
}

/** A scenario file: what `spillway simulate` reads. */
export interface ScenarioFile {
  /** What the scenario is called. */
  name: string;
  /** What it shows, for a person. */
  about?: string;
  /** How long clients ask, in seconds; what they asked for then ends. */
  duration_s: number;
  /** The grain of charts, of peak load and of recovery. Default 1,000. */
  bucket_ms?: number;
  /** The first seed. Default 1. */
  seed?: number;
  /** How many seeds. Default 20. */
  seeds?: number;
  /** Which machinery carries calls out. Default `fidelity`. */
  engine?: 'fidelity' | 'fleet';
  /** Processes, each with breakers and a budget of its own, that share the clients. Default 1. */
  processes?: number;
  /** Weather, by name. */
  weather?: Record<string, WeatherEntry>;
  /** Servers, by name. */
  servers: Record<string, QueueServerEntry | RowServerEntry>;
  /** Tools, by name. */
  tools: Record<string, ScenarioToolEntry>;
  /** Plans, by name. */
  plans?: Record<string, ScenarioPlanEntry>;
  /** Who asks. */
  clients: ClientsEntry[];
  /** Policies to compare, by name, where none are given. */
  policies?: Record<string, Omit<PolicyFile, 'name'>>;
  /** What must hold: of every policy, or by its name. */
  expect?: Record<string, ExpectEntry> | ExpectEntry;
}
