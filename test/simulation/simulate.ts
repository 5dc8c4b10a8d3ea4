import { startCall, startTurn, type Client } from './client.ts';
import { converge } from './converge.ts';
import type { Sometimes, Violation } from './findings.ts';
import type { Operation } from './scenario.ts';
import { untilQuiet } from './until-quiet.ts';
import { World } from './world.ts';

export interface Outcome {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly seen: ReadonlySet<Sometimes>;
  /** Of everything that the trace told. */
  readonly hash: number;
}

function perform(world: World, operation: Operation, clients: Client[]): void {
  const { runtime, scenario, findings, spillway } = world;
  if (world.closed) return;
  world.log?.(`${world.elapsedMs.toFixed(1).padStart(8)} ---- ${JSON.stringify(operation)}`);
  switch (operation.kind) {
    case 'call':
      clients.push(startCall(world, operation));
      return;
    case 'turn':
      clients.push(startTurn(world, operation));
      return;
    case 'stall':
      return world.stall(operation.atMs, operation.ms);
    case 'wall_jump':
      if (world.active.size > 0) findings.saw('wall clock jumps in a call');
      return runtime.jumpWall(operation.ms);
    case 'admin': {
      const tool = scenario.tools[operation.tool];
      const watch =
        tool === undefined
          ? undefined
          : world.breakerOf(tool, { n: 0, startedMs: 0, ownDeadlineMs: 0, turnDeadlineMs: 0, tenant: '' });
      world.byHand = true;
      watch?.breaker[operation.verb]();
      world.byHand = false;
      return;
    }
    case 'close':
      if (world.active.size > 0) findings.saw('closed while running');
      world.closed = true;
      void spillway.close();
      world.checkGivenUp();
      findings.check(world.active.size === 0, 'RES-2', () => `${world.active.size} calls go on after close()`);
  }
}

/**
 * One run: a layer, its callers and their faults, all drawn from the seed; then a time without faults, in which all
 * must recover.
 * @param log hears every event, for a person
 */
export async function simulate(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new World(seed, log);
  const { findings, scenario, runtime, spillway } = world;
  const clients: Client[] = [];
  if (scenario.watchBreakers) {
    for (const tool of scenario.tools) {
      world
        .breakerOf(tool, { n: 0, startedMs: 0, ownDeadlineMs: 0, turnDeadlineMs: 0, tenant: '' })
        ?.breaker.state$.subscribe();
    }
    world.watched = world.breakers.size;
  }
  for (const operation of scenario.operations)
    runtime.scheduler.after(operation.atMs, () => perform(world, operation, clients));
  await untilQuiet(world);
  if (findings.violations.length === 0) {
    for (const client of clients) client.review();
    findings.check(
      world.active.size === 0 && (world.closed || world.turns.size === 0),
      'RES-2',
      () => `${world.active.size} calls and ${world.turns.size} turns never end`,
    );
    for (const breaker of world.breakers.values()) breaker.replay();
    world.hookWatch?.review();
    findings.check(
      spillway.droppedEvents === world.dropsExpected,
      'TRC-3',
      () => `${spillway.droppedEvents} events counted as dropped, ${world.dropsExpected} were`,
    );
    if (findings.violations.length === 0) await converge(world);
  }
  return { seed, violations: findings.violations, seen: findings.seen, hash: world.digest.hash };
}
