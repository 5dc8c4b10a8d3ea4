import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { checkNumber, integer, positiveDuration } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import type { Dispatcher } from '../dispatcher.ts';
import { LedgerFleet } from '../engine.ts';
import type { LedgerConnection } from './connection.ts';
import { RedisLedger } from './ledger.ts';

const COMMAND_TIMEOUT_MS = 5_000;

/** What every fleet has to decide whose ledger is in Redis. */
export interface RedisTerms {
  /** The fleet's name. Who submits and who serves give the same one. Default `spillway`. */
  readonly name?: string;
  /** Turns that have not settled, beyond which `submit` refuses. Default 100,000. */
  readonly maxOpen?: number;
  /** How long a turn is kept after it has settled, or after its deadline. Default 86,400,000: a day. */
  readonly keepMs?: number;
  /** Events that are kept of a turn; the oldest make room. Default 10,000. */
  readonly maxEvents?: number;
  /** How long an engine that gives no answer is asked on behalf of `submit`, `cancel` and `health`. Default 30,000. */
  readonly answerTimeoutMs?: number;
  /** Clock, timers and ids. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** The options that `RedisTerms` names. */
export const REDIS_TERMS = ['name', 'maxOpen', 'keepMs', 'maxEvents', 'answerTimeoutMs', 'runtime'] as const;

/** What a fleet is called where nobody says. */
export const FLEET_NAME = 'spillway';

/**
 * An engine whose ledger is in Redis.
 * @throws RangeError for a term out of its range
 */
export function engineOnRedis(
  connection: LedgerConnection,
  { name = FLEET_NAME, maxOpen = 100_000, keepMs = 86_400_000, maxEvents = 10_000, ...terms }: RedisTerms,
  dispatcher: Dispatcher,
): FleetEngine {
  const { answerTimeoutMs = 30_000, runtime = liveRuntime } = terms;
  checkNumber('maxOpen', maxOpen, integer(1, 10_000_000));
  checkNumber('keepMs', keepMs, positiveDuration);
  checkNumber('maxEvents', maxEvents, integer(10, 1_000_000));
  checkNumber('answerTimeoutMs', answerTimeoutMs, positiveDuration);
  const subscriber = connection.duplicate();
  // A connection that is lost is made again by the client; what was asked over it rejects on its own.
  subscriber.on('error', () => undefined);
  const ledger = new RedisLedger(connection, {
    name: `${name}-ledger`,
    subscriber,
    keepMs,
    maxEvents,
    commandTimeoutMs: COMMAND_TIMEOUT_MS,
    runtime,
  });
  return new LedgerFleet({
    ledger,
    dispatcher,
    runtime,
    maxOpen,
    answerTimeoutMs,
    closed: () => subscriber.disconnect(),
  });
}
