import type { FleetHealth } from '../../contract/fleet/port.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import { fleetMetrics } from '../../fleet/metrics.ts';
import { ndjsonLine } from '../../sinks/ndjson.ts';
import { FLEET_HELP, parseFleet } from '../arguments/fleet.ts';
import { UsageError } from '../arguments/usage.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { duration, messageLine } from '../show/text.ts';
import { openEngine } from './engine.ts';

const STUCK_SHOWN = 10;

/** The fleet in lines. */
export function fleetText({ engine, workers, waiting, running, lagMs, stuck }: FleetHealth): string {
  const lines = [
    `${engine}: ${waiting} waiting, ${running} running, the oldest waits ${duration(lagMs)}`,
    workers.length === 0 ? 'no worker serves' : `${workers.length} ${workers.length === 1 ? 'worker' : 'workers'}`,
    ...workers.map(
      ({ worker, version, turns, silentMs }) =>
        `  ${worker}  version ${version}  ${turns} ${turns === 1 ? 'turn' : 'turns'}  heard ${duration(silentMs)} ago`,
    ),
    ...stuck
      .slice(0, STUCK_SHOWN)
      .map(({ turnId, overdueMs }) => `stuck: ${turnId}, ${duration(overdueMs)} after its deadline`),
    ...(stuck.length > STUCK_SHOWN ? [`... and ${stuck.length - STUCK_SHOWN} more`] : []),
  ];
  return lines.map((line) => `${messageLine(line)}\n`).join('');
}

/**
 * Runs `spillway fleet`: tells how a fleet stands.
 * @returns the exit code
 * @throws UsageError
 */
export async function runFleet(args: readonly string[], { stdout, env }: CommandContext): Promise<number> {
  const command = parseFleet(args);
  if (command === undefined) {
    stdout.write(FLEET_HELP);
    return EXIT.fine;
  }
  const opened = await openEngine(command.engine, env);
  const { fleet } = opened;
  try {
    const health = await fleet.health();
    if (command.format === 'json') stdout.write(ndjsonLine(health));
    else stdout.write(command.format === 'metrics' ? fleetMetrics(health) : fleetText(health));
    return health.stuck.length > 0 || health.workers.length === 0 ? EXIT.failed : EXIT.fine;
  } catch (error) {
    if (isToolExecutionError(error)) throw new UsageError(error.message, { cause: error });
    throw error;
  } finally {
    await opened.close();
  }
}
