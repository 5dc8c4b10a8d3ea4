import type { TraceEvent } from 'spillway';
import { startCall, startTurn, type Client } from '../simulation/client.ts';
import { untilQuiet } from '../simulation/until-quiet.ts';
import { World } from '../simulation/world.ts';

/**
 * The trace of a world of the simulation: its calls and turns with the failures, timeouts, breakers, hooks and clients
 * that its seed draws. What breaks the clock or the layer itself is left out: stalls, jumps, orders, `close()`.
 */
export async function recordedWorld(seed: number): Promise<TraceEvent[]> {
  const world = new World(seed);
  const trace: TraceEvent[] = [];
  world.spillway.trace$.subscribe((event) => trace.push(structuredClone(event)));
  const clients: Client[] = [];
  for (const operation of world.scenario.operations)
    if (operation.kind === 'call')
      world.runtime.scheduler.after(operation.atMs, () => clients.push(startCall(world, operation)));
    else if (operation.kind === 'turn')
      world.runtime.scheduler.after(operation.atMs, () => clients.push(startTurn(world, operation)));
  await untilQuiet(world);
  return trace;
}
