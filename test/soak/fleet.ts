import assert from 'node:assert/strict';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { createSpillway, isToolExecutionError, plan, type Plan } from '../../src/index.ts';
import type { FleetEngine } from '../../src/contract/fleet/port.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { fleetConformance, fleetConformanceTools } from '../../src/testing/index.ts';
import { harness, startFleet, type Fleet, type FleetOptions, type WorkerProcess } from '../fleet/kit.ts';
import { startRestate } from '../fleet/restate/server.ts';
import { served } from '../fleet/served.ts';

/**
 * What takes too long for every run of the tests: `node test/soak/fleet.ts NAME`. Prints figures, and fails where a
 * promise is broken.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    turns: { type: 'string' },
    workers: { type: 'string' },
    only: { type: 'string' },
    engine: { type: 'string' },
  },
});
const sized = (given: string | undefined, otherwise: number): number => Number(given ?? otherwise);
const opened = async (options: FleetOptions = {}): Promise<Fleet> =>
  startFleet(options, values.engine === 'restate' ? await startRestate() : undefined);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const percentile = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? 0;
const ms = (n: number): string => `${n.toFixed(1)} ms`;

const conformance = async (): Promise<void> => {
  const only = values.only;
  for (const { name, run } of fleetConformance(
    async () => harness(values.engine === 'restate' ? await startRestate() : undefined),
    { turns: sized(values.turns, 60), nodeCostMs: values.engine === 'restate' ? 25 : 10 },
  )) {
    if (only !== undefined && !name.includes(only)) continue;
    const began = performance.now();
    await run();
    say(`ok  ${((performance.now() - began) / 1000).toFixed(1)} s  ${name}`);
  }
};

const settled = (engine: FleetEngine, turnId: string): Promise<unknown> => lastValueFrom(engine.attach(turnId));

const NODES = 20;
const chainOf = (nodes: number): Plan =>
  plan.from(
    Array.from({ length: nodes }, (_, at) => ({
      id: `n${at}`,
      tool: 'work',
      input: { ms: 0 },
      ...(at === 0 ? {} : { needs: [`n${at - 1}`] }),
    })),
    { timeoutMs: 3_600_000 },
  );

const operations = async ({ server }: Fleet): Promise<number> =>
  Number(/total_commands_processed:(\d+)/.exec(await server.cli('INFO', 'stats'))?.[1]);
const memoryOf = async ({ server }: Fleet): Promise<number> =>
  Number(/used_memory:(\d+)/.exec(await server.cli('INFO', 'memory'))?.[1]) / 1e6;

/** What a node costs more than in this process, over the same store and the same tools. */
const overhead = async (): Promise<void> => {
  const fleet = await opened();
  try {
    const turns = sized(values.turns, 30);
    const tools = fleetConformanceTools(
      {
        mark: (kind, mark) => fleet.redis.rpush(`here:${kind}`, JSON.stringify(mark)),
        first: (key, kind, mark) => served(fleet.redis, `here:${key}`, `here:${kind}`, mark),
      },
      'here',
    );
    const local = createSpillway({ tools, store: redisStore(fleet.redis) });
    await fleet.start('w').ready;
    const here: number[] = [];
    const there: number[] = [];
    for (let at = 0; at < turns; at++) {
      let began = performance.now();
      const keyed = chainOf(NODES).nodes.map((node) => ({ ...node, idempotencyKey: `${at}/${node.id}` }));
      await lastValueFrom(local.turn(plan.from(keyed)));
      here.push((performance.now() - began) / NODES);
      began = performance.now();
      await fleet.engine.submit(`turn-${at}`, chainOf(NODES));
      await settled(fleet.engine, `turn-${at}`);
      there.push((performance.now() - began) / NODES);
    }
    say(`in process, keyed   p50 ${ms(percentile(here, 0.5))} p95 ${ms(percentile(here, 0.95))} a node`);
    say(`in the fleet        p50 ${ms(percentile(there, 0.5))} p95 ${ms(percentile(there, 0.95))} a node`);
    say(`more                p50 ${ms(percentile(there, 0.5) - percentile(here, 0.5))}`);
    const before = await operations(fleet);
    await fleet.engine.submit('counted', chainOf(NODES));
    await settled(fleet.engine, 'counted');
    say(
      `commands of Redis   ${(((await operations(fleet)) - before) / NODES).toFixed(1)} a node, with what runs inside of scripts`,
    );
  } finally {
    await fleet.stop();
  }
};

/** What lives on the heap of a worker, in megabytes. */
const heapOf = async ({ child }: WorkerProcess): Promise<number> => {
  const told = once(child, 'message');
  child.send('heap');
  const [{ heapMb }] = (await told) as [{ readonly heapMb: number }];
  return heapMb;
};

/** So many turns are open at a time: enough for all workers, and no more than what a worker's heap shows by itself. */
const OPEN_MAX = 2_000;

/** Submits a turn as soon as the fleet has room for it. */
const submitted = async (engine: FleetEngine, turnId: string): Promise<unknown> => {
  for (;;) {
    try {
      return await engine.submit(turnId, chainOf(1));
    } catch (error) {
      if (!isToolExecutionError(error) || error.retryAfterMs === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs));
    }
  }
};

const LOOK_MS = 5_000;
/** What may live more on the heap of a worker in the last quarter of the run than in its second. */
const GROWN_MB = 20;

/** Looks at a run from time to time until nothing is open; gives what the workers held, each time. */
const watched = async (fleet: Fleet, workers: readonly WorkerProcess[], submitted: Promise<unknown>) => {
  const began = performance.now();
  const held: number[] = [];
  let isSubmitted = false;
  void submitted.then(() => (isSubmitted = true));
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const { waiting, running, lagMs } = await fleet.engine.health();
    held.push(Math.max(...(await Promise.all(workers.map(heapOf)))));
    say(
      `${((performance.now() - began) / 1000).toFixed(0)} s: ${waiting} wait, ${running} run, lag ${lagMs} ms, ` +
        `${(await memoryOf(fleet)).toFixed(0)} MB in Redis, ${held.at(-1)?.toFixed(0)} MB live in the largest worker`,
    );
    if (isSubmitted && waiting + running === 0) return held;
  }
};

/** Many small turns over a few workers: each settles once, and no worker grows. */
const throughput = async (): Promise<void> => {
  const fleet = await opened({ maxOpen: OPEN_MAX });
  try {
    const turns = sized(values.turns, 100_000);
    const names = Array.from({ length: sized(values.workers, 4) }, (_, at) => `w${at}`);
    const workers = names.map((name) => fleet.start(name, { concurrency: 25, quiet: true }));
    await Promise.all(workers.map(({ ready }) => ready));
    const began = performance.now();
    const before = await operations(fleet);
    let next = 0;
    const submitting = Array.from({ length: 50 }, async () => {
      while (next < turns) await submitted(fleet.engine, `turn-${next++}`);
    });
    const held = await watched(fleet, workers, Promise.all(submitting));
    const tookS = (performance.now() - began) / 1000;
    say(`${turns} turns in ${tookS.toFixed(1)} s: ${(turns / tookS).toFixed(0)} a second`);
    say(`commands of Redis: ${(((await operations(fleet)) - before) / turns).toFixed(1)} a turn`);
    const effects = (await fleet.marks('effect')).map(({ key }) => key);
    assert.deepEqual([effects.length, new Set(effects).size], [turns, turns], 'each turn takes effect once');
    for (let at = 0; at < turns; at += Math.ceil(turns / 1_000)) {
      const last = (await settled(fleet.engine, `turn-${at}`)) as { readonly result: { readonly status: string } };
      assert.equal(last.result.status, 'completed', `turn-${at}`);
    }
    const early = held.slice(Math.floor(held.length / 4), Math.ceil(held.length / 2));
    const late = held.slice(Math.floor((held.length * 3) / 4));
    const grownMb = Math.max(...late) - Math.max(...early);
    say(`the largest worker grew by ${grownMb.toFixed(0)} MB from the second quarter to the last`);
    assert.ok(grownMb <= GROWN_MB, `no worker grows by more than ${GROWN_MB} MB`);
  } finally {
    await fleet.stop();
  }
};

/**
 * What Redis is asked for a turn, and how busy that keeps it: what the arithmetic of `src/fleet/README.md` starts from.
 */
const operationsOf = async (): Promise<void> => {
  const fleet = await opened();
  const stats = async (): Promise<Map<string, readonly [calls: number, usec: number]>> => {
    const lines = (await fleet.server.cli('INFO', 'commandstats')).matchAll(/cmdstat_(\S+?):calls=(\d+),usec=(\d+)/g);
    return new Map(
      [...lines].map(([, command = '', calls, usec]) => [command, [Number(calls), Number(usec)] as const]),
    );
  };
  try {
    await fleet.start('w', { concurrency: 25 }).ready;
    const turns = sized(values.turns, 300);
    for (const nodes of [1, 5, 20]) {
      await fleet.engine.submit(`warm-${nodes}`, chainOf(nodes));
      await settled(fleet.engine, `warm-${nodes}`);
      const before = await stats();
      const ids = Array.from({ length: turns }, (_, at) => `turn-${nodes}-${at}`);
      await Promise.all(ids.map((id) => fleet.engine.submit(id, chainOf(nodes))));
      for (;;) {
        const { waiting, running } = await fleet.engine.health();
        if (waiting + running === 0) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const after = await stats();
      const of = (command: string, part: 0 | 1): number =>
        ((after.get(command)?.[part] ?? 0) - (before.get(command)?.[part] ?? 0)) / turns;
      // What runs inside of a script is counted, and timed, as the script's as well.
      const outer = of('evalsha', 0) + of('eval', 0);
      say(
        `${nodes} nodes: ${outer.toFixed(1)} scripts, ${of('xadd', 0).toFixed(1)} events, ${(of('evalsha', 1) + of('eval', 1)).toFixed(0)} us of Redis a turn`,
      );
    }
  } finally {
    await fleet.stop();
  }
};

const RUNS: Readonly<Record<string, () => Promise<void>>> = {
  conformance,
  overhead,
  throughput,
  operations: operationsOf,
};
const [name = ''] = positionals;
const run = RUNS[name];
if (run === undefined) throw new Error(`there is no ${name}; there are ${Object.keys(RUNS).join(', ')}`);
await run();
