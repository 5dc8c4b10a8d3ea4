import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

/** `spillway worker`: what it serves, and where. */
export interface WorkerCommand {
  readonly planPath: string;
  readonly engine: string | undefined;
  readonly worker?: string;
  readonly version?: string;
  readonly concurrency: number;
  readonly drainMs: number;
  /** Where metrics and probes are served; 0 is a free port. */
  readonly metricsPort?: number;
}

/** `spillway attach`: which turn, and how it is shown. */
export interface AttachCommand {
  readonly turnId: string;
  readonly engine: string | undefined;
  readonly json: boolean;
  readonly ascii: boolean;
  readonly color: boolean;
  readonly cancel: boolean;
}

/** `spillway fleet`: how it is told. */
export interface FleetCommand {
  readonly engine: string | undefined;
  readonly format: 'text' | 'json' | 'metrics';
}

const ENGINE_HELP = `  --engine URL    bullmq://HOST:PORT/DB?name=FLEET, bullmqs:// over TLS; or Restate's ingress and a
                  Redis, restate://HOST:8080?redis=redis://HOST:6379; or SPILLWAY_ENGINE, which
                  others cannot read from the command line`;

export const WORKER_HELP: string = `spillway worker PLAN.yaml [options]

Serves the tools of a plan file to a fleet: runs turns that others submit, and goes on with those
whose workers died. SIGTERM drains it: it takes no new turn, and hands over those that it has.
Restate calls it at port 9080, or &port=N of the URL; register that address: POST /deployments.

${ENGINE_HELP}
  --worker NAME   its name in traces (default: a new id)
  --tools-version V  the version of its tools: turns are finished by the one that began them
                  (default: a digest of the file's servers and tools)
  --concurrency N  turns at a time, 1 to 10000 (default 10)
  --drain MS      how long running nodes may take to end once it drains (default 10000)
  --metrics PORT  serve /metrics, /healthz and /readyz at this port of all addresses (0: a free one)
  --help          this text

Exit codes: 0 drained, 1 failed, 2 usage or bad plan.
A plan starts servers, which are programs: serve only plans whose commands you would run yourself.
`;

export const ATTACH_HELP: string = `spillway attach ID [options]

Shows a turn of a fleet as it runs, from its first event on, or as it ran. Interrupting it leaves
the turn alone.

${ENGINE_HELP}
  --cancel        cancel the turn, and show how it ends
  --json          events on stdout, one JSON object a line
  --no-color      no colours (so does NO_COLOR in the environment)
  --ascii         draw with ASCII characters only
  --help          this text

Exit codes: 0 completed or partial, 1 failed or escalated, 2 usage or no such turn, 130 interrupted.
`;

export const FLEET_HELP: string = `spillway fleet [options]

Tells how a fleet stands: workers, turns that wait and run, how long the oldest waits, stuck turns.

${ENGINE_HELP}
  --json          as one JSON object
  --metrics       as metrics for Prometheus
  --help          this text

Exit codes: 0 nothing is stuck, 1 turns are stuck or nobody serves, 2 usage or not reached.
`;

export const WORKER_OPTIONS = {
  engine: { type: 'string' },
  worker: { type: 'string' },
  'tools-version': { type: 'string' },
  concurrency: { type: 'string' },
  drain: { type: 'string' },
  metrics: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export const ATTACH_OPTIONS = {
  engine: { type: 'string' },
  cancel: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  'no-color': { type: 'boolean', default: false },
  ascii: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export const FLEET_OPTIONS = {
  engine: { type: 'string' },
  json: { type: 'boolean', default: false },
  metrics: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const CONCURRENCY = 10;
const DRAIN_MS = 10_000;

const integerOf = (option: string, text: string, min: number, max: number): number => {
  const number = Number(text);
  if (!/^\d{1,9}$/.test(text) || number < min || number > max)
    throw new UsageError(`--${option} must be an integer from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return number;
};

/**
 * Reads what follows `spillway worker`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseWorker(args: readonly string[]): WorkerCommand | undefined {
  const { values, positionals } = parseOptions(args, WORKER_OPTIONS);
  if (values.help) return undefined;
  const { engine, worker, concurrency, drain, metrics } = values;
  const version = values['tools-version'];
  return {
    planPath: oneFile('worker PLAN.yaml', 'plan file', positionals),
    engine,
    concurrency: concurrency === undefined ? CONCURRENCY : integerOf('concurrency', concurrency, 1, 10_000),
    drainMs: drain === undefined ? DRAIN_MS : integerOf('drain', drain, 0, 600_000),
    ...(worker === undefined ? {} : { worker }),
    ...(version === undefined ? {} : { version }),
    ...(metrics === undefined ? {} : { metricsPort: integerOf('metrics', metrics, 0, 65_535) }),
  };
}

/**
 * Reads what follows `spillway attach`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseAttach(args: readonly string[]): AttachCommand | undefined {
  const { values, positionals } = parseOptions(args, ATTACH_OPTIONS);
  if (values.help) return undefined;
  return {
    turnId: oneFile('attach ID', 'turn id', positionals),
    engine: values.engine,
    json: values.json,
    ascii: values.ascii,
    color: !values['no-color'],
    cancel: values.cancel,
  };
}

/**
 * Reads what follows `spillway fleet`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseFleet(args: readonly string[]): FleetCommand | undefined {
  const { values, positionals } = parseOptions(args, FLEET_OPTIONS);
  if (values.help) return undefined;
  if (positionals.length > 0)
    throw new UsageError(`fleet takes no words; leave out ${JSON.stringify(positionals[0]?.slice(0, 64))}`);
  if (values.json && values.metrics) throw new UsageError('fleet tells it as --json or as --metrics; leave one out');
  return { engine: values.engine, format: values.json ? 'json' : values.metrics ? 'metrics' : 'text' };
}
