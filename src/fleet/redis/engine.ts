import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { checkNumber, integer, positiveDuration } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import type { Dispatcher } from '../dispatcher.ts';
import { LedgerFleet } from '../engine.ts';
import type { LedgerConnection } from './connection.ts';
import { RedisLedger } from './ledger.ts';

const COMMAND_TIMEOUT_MS = 5_000;

/** What all engines have to decide whose ledger is in Redis. */
export interface RedisTerms {
  readonly name?: string;
  readonly maxOpen?: number;
  readonly keepMs?: number;
  readonly maxEvents?: number;
  readonly answerTimeoutMs?: number;
  readonly runtime?: Runtime;
}

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
