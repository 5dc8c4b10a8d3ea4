import type { Outcome } from '../simulate.ts';
import { untilQuiet } from '../until-quiet.ts';
import { startKeyed, startKeyedTurn, type KeyClient } from './client.ts';
import { convergeKeys } from './converge.ts';
import type { KeyOperation } from './scenario.ts';
import { KeyWorld, type Worker } from './world.ts';

/** Whoever wants to call goes to a process that lives. */
const livingFrom = ({ workers }: KeyWorld, index: number): Worker | undefined =>
  [...workers.slice(index), ...workers].find(({ process, closed }) => !process.dead && !closed);

const calls = (world: KeyWorld, index: number, start: (worker: Worker) => KeyClient, clients: KeyClient[]): void => {
  const worker = livingFrom(world, index);
  worker?.process.deliver(() => {
    if (!worker.closed) clients.push(start(worker));
  });
};

function perform(world: KeyWorld, operation: KeyOperation, clients: KeyClient[]): void {
  const { workers, findings, server, runtime, log } = world;
  log?.(`${world.elapsedMs.toFixed(1).padStart(8)} ---- ${JSON.stringify(operation)}`);
  switch (operation.kind) {
    case 'call':
      return calls(world, operation.process, (worker) => startKeyed(world, worker, operation), clients);
    case 'turn':
      return calls(world, operation.process, (worker) => startKeyedTurn(world, worker, operation), clients);
    case 'stall': {
      const process = workers[operation.process]?.process;
      for (const call of world.calls.values())
        if (call.process === process && call.running !== undefined && call.tool.leaseMs < operation.ms)
          findings.saw('stall longer than the lease');
      return process?.stall(operation.ms);
    }
    case 'wall_jump':
      return workers[operation.process]?.process.jumpWall(operation.ms);
    case 'kill': {
      const worker = workers[operation.process];
      if (worker !== undefined) world.kill(worker);
      return undefined;
    }
    case 'close': {
      const worker = workers[operation.process];
      worker?.process.deliver(() => {
        worker.closed = true;
        void worker.spillway.close();
      });
      return undefined;
    }
    case 'down':
      world.down = { untilMs: runtime.now() + operation.ms, how: operation.how };
      return undefined;
    case 'failover':
      server.failover(operation.lagMs);
      return undefined;
    case 'clear': {
      const keys = [...server.keys];
      return server.clear(operation.all ? keys : keys.slice(0, 1));
    }
  }
}

/**
 * One run of calls under keys: processes that share a store and lose it, stall, and die, all drawn from the seed; then
 * a time without faults, in which every key gives an answer, and the same one twice.
 * @param log hears every event, for a person
 */
export async function simulateKeys(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new KeyWorld(seed, log);
  const { findings, runtime, scenario } = world;
  const clients: KeyClient[] = [];
  for (const operation of scenario.operations)
    runtime.scheduler.after(operation.atMs, () => perform(world, operation, clients));
  await untilQuiet(world);
  if (findings.violations.length === 0) await convergeKeys(world);
  if (findings.violations.length === 0) {
    for (const client of clients) client.review();
    world.review();
  }
  return { seed, violations: findings.violations, seen: findings.seen, hash: world.digest.hash };
}
