import { parseArgs } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, type Plan } from '../../src/index.ts';
import type { FleetEngine } from '../../src/contract/fleet/port.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { fleetConformance, fleetConformanceTools } from '../../src/testing/index.ts';
import type { BullmqFleetOptions } from '../../src/fleet/bullmq.ts';
import { harness, startFleet, type Fleet } from '../fleet/kit.ts';
import { startRestate } from '../fleet/restate/server.ts';

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
const opened = async (options: BullmqFleetOptions = {}): Promise<Fleet> =>
  startFleet(options, values.engine === 'restate' ? await startRestate() : undefined);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const percentile = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? 0;
const ms = (n: number): string => `${n.toFixed(1)} ms`;

const conformance = async (): Promise<void> => {
  const only = values.only;
  for (const { name, run } of fleetConformance(
    async () => harness(values.engine === 'restate' ? await startRestate() : undefined),
    { turns: sized(values.turns, 60) },
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
        first: async (key) => (await fleet.redis.set(`here:${key}`, '1', 'NX')) === 'OK',
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

/** Many small turns over a few workers. */
const throughput = async (): Promise<void> => {
  const fleet = await opened({ maxOpen: 1_000_000 });
  try {
    const turns = sized(values.turns, 100_000);
    const workers = sized(values.workers, 4);
    await Promise.all(
      Array.from({ length: workers }, (_, at) => fleet.start(`w${at}`, { concurrency: 25, quiet: true }).ready),
    );
    const began = performance.now();
    const before = await operations(fleet);
    let next = 0;
    const submitting = Array.from({ length: 50 }, async () => {
      while (next < turns) await fleet.engine.submit(`turn-${next++}`, chainOf(1));
    });
    await Promise.all(submitting);
    say(`submitted ${turns} in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    for (;;) {
      const { waiting, running, lagMs } = await fleet.engine.health();
      say(
        `${((performance.now() - began) / 1000).toFixed(0)} s: ${waiting} wait, ${running} run, lag ${lagMs} ms, ${(await memoryOf(fleet)).toFixed(0)} MB in Redis`,
      );
      if (waiting + running === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 5_000));
    }
    const tookS = (performance.now() - began) / 1000;
    const effects = (await fleet.marks('effect')).length;
    say(`${turns} turns in ${tookS.toFixed(1)} s: ${(turns / tookS).toFixed(0)} a second; ${effects} effects`);
    say(`commands of Redis: ${(((await operations(fleet)) - before) / turns).toFixed(1)} a turn`);
  } finally {
    await fleet.stop();
  }
};

/** One tenant floods; another wants a turn now and then. */
const tenants = async (): Promise<void> => {
  const fleet = await opened();
  try {
    await Promise.all(['a', 'b'].map((name) => fleet.start(name, { concurrency: 5 }).ready));
    const small = (at: number): Plan => plan.from([{ id: 'n', tool: 'work', input: { ms: 50, value: at } }]);
    const asked = async (prefix: string, count: number): Promise<number[]> => {
      const took: number[] = [];
      for (let at = 0; at < count; at++) {
        const began = performance.now();
        await fleet.engine.submit(`${prefix}-${at}`, small(at), { tenant: 'quiet' });
        await settled(fleet.engine, `${prefix}-${at}`);
        took.push(performance.now() - began);
      }
      return took;
    };
    const quiet = await asked('alone', 60);
    // As another machine has it: its commands do not wait behind the other's.
    const loud = fleet.open();
    const floods = sized(values.turns, 2_000);
    const flooding = Promise.all(
      Array.from({ length: floods }, (_, at) => loud.submit(`flood-${at}`, small(at), { tenant: 'loud' })),
    );
    const beside = await asked('beside', 60);
    await flooding;
    const { waiting } = await fleet.engine.health();
    say(`alone   p50 ${ms(percentile(quiet, 0.5))} p95 ${ms(percentile(quiet, 0.95))}`);
    say(
      `beside  p50 ${ms(percentile(beside, 0.5))} p95 ${ms(percentile(beside, 0.95))}, ${waiting} of the other still wait`,
    );
  } finally {
    await fleet.stop();
  }
};

/** Workers are replaced one after the other by ones of another version, under load. */
const deploy = async (): Promise<void> => {
  const fleet = await opened();
  try {
    const turns = sized(values.turns, 80);
    const trip = plan.from([
      { id: 'a', tool: 'work', input: { ms: 300 } },
      { id: 'b', tool: 'work', input: { ms: 300 }, needs: ['a'] },
      { id: 'c', tool: 'work', input: { ms: 300 }, needs: ['b'] },
    ]);
    const old = ['v1-a', 'v1-b', 'v1-c', 'v1-d'].map((name) => fleet.start(name, { version: 'v1', drainMs: 1_000 }));
    await Promise.all(old.map(({ ready }) => ready));
    const ids = Array.from({ length: turns }, (_, at) => `turn-${at}`);
    const submitting = (async () => {
      for (const id of ids) {
        await fleet.engine.submit(id, trip);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    for (const [at, { child, gone }] of old.entries()) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await fleet.start(`v2-${at}`, { version: 'v2' }).ready;
      child.kill('SIGTERM');
      await gone;
    }
    await submitting;
    const results = await Promise.all(
      ids.map(async (id) => {
        const last = await settled(fleet.engine, id);
        return (last as { readonly result: { readonly status: string; readonly summary: string } }).result;
      }),
    );
    const statuses = Object.groupBy(results, ({ status }) => status);
    say(
      Object.entries(statuses)
        .map(([status, all]) => `${all?.length} ${status}`)
        .join(', '),
    );
    const starts = Map.groupBy(await fleet.marks('started'), ({ key }) => key.split('/')[0]);
    const mixed = [...starts].filter(([, marks]) => new Set(marks.map(({ worker }) => worker.slice(0, 2))).size > 1);
    say(`${mixed.length} turns were run by two versions`);
    for (const { summary } of statuses['failed'] ?? statuses['escalated'] ?? []) say(summary);
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
  tenants,
  deploy,
  operations: operationsOf,
};
const [name = ''] = positionals;
const run = RUNS[name];
if (run === undefined) throw new Error(`there is no ${name}; there are ${Object.keys(RUNS).join(', ')}`);
await run();
