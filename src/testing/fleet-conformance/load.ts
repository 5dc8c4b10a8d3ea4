import type { Plan, TurnResult } from '../../contract/turn.ts';
import { liveRuntime } from '../../runtime.ts';
import { plan } from '../../turn/plan.ts';
import { eventsOf, expectThat, expectWhole, passed, resultOf, until, type FleetHarnessCase } from './check.ts';
import type { FleetHarness, FleetWorkerProcess } from './world.ts';

/** The one of so many that a share of them is not above. */
const percentile = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(numbers.length * share) - 1)] ?? 0;

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const beganMs = liveRuntime.now();
  await work();
  return liveRuntime.now() - beganMs;
};

const chainOf = (nodes: number, ms: number, timeoutMs = 120_000): Plan =>
  plan.from(
    Array.from({ length: nodes }, (_, at) => ({
      id: `n${at}`,
      tool: 'work',
      input: { ms },
      ...(at === 0 ? {} : { needs: [`n${at - 1}`] }),
    })),
    { timeoutMs },
  );

const COST_NODES = 20;
const COST_ROUNDS = 12;
/** What a busy machine adds is in the slow ones. */
const FAST = 0.25;

const DEPLOYED = 4;
const DEPLOY_EVERY_MS = 700;
const DEPLOY_SUBMIT_MS = 40;
/** What the last worker of a version leaves some engines settle only once its deadline has passed. */
const DEPLOY_TIMEOUT_MS = 40_000;
/** What a worker that ends can have: as many turns as `serve` runs at a time where nobody says. */
const DEPLOY_REFUSED_MAX = 10;

const REFUSED = /^The turn was refused: tools of version v1 began it, and no worker has them/;

/** Submits turns until it is told to stop; gives their ids. */
const flowOf = (harness: FleetHarness): { stop(): Promise<readonly string[]> } => {
  const turnIds: string[] = [];
  const ending = new AbortController();
  const flowing = (async () => {
    while (!ending.signal.aborted) {
      const turnId = `turn-${turnIds.length}`;
      turnIds.push(turnId);
      await harness.engine.submit(turnId, chainOf(3, 200, DEPLOY_TIMEOUT_MS));
      await passed(DEPLOY_SUBMIT_MS);
    }
  })();
  return {
    stop: async () => {
      ending.abort();
      await flowing;
      return turnIds;
    },
  };
};

/** One after the other is replaced, each only once its successor serves. */
const deploy = async (harness: FleetHarness, old: readonly FleetWorkerProcess[]): Promise<void> => {
  for (const [at, worker] of old.entries()) {
    await passed(DEPLOY_EVERY_MS);
    await harness.start(`v2-${at}`, 'v2');
    await worker.drain();
  }
  await passed(DEPLOY_EVERY_MS);
};

/** Each turn by one version only, each effect once, and all of them where the turn completed. */
const expectOneVersion = async (harness: FleetHarness, results: ReadonlyMap<string, TurnResult>): Promise<void> => {
  const started = await harness.marks('started');
  const effects = (await harness.marks('effect')).map(({ key }) => key);
  expectThat(new Set(effects).size === effects.length, 'each effect happens once', effects);
  const byTurn = Map.groupBy(started, ({ key }) => key.slice(0, key.indexOf('/')));
  const used = new Set<string>();
  for (const [turnId, { status, nodes }] of results) {
    const versions = new Set(byTurn.get(turnId)?.map(({ worker }) => worker.slice(0, 2)));
    expectThat(versions.size <= 1, `${turnId} is run by one version`, [...versions]);
    for (const version of versions) used.add(version);
    const missing = nodes.filter(({ id }) => status === 'completed' && !effects.includes(`${turnId}/${id}`));
    expectThat(missing.length === 0, `all of ${turnId} took effect`, missing);
  }
  expectThat([...used].toSorted().join() === 'v1,v2', 'both versions ran turns', [...used]);
};

/** What the tenant wants that asks now and then, two at a time; long beside what a busy machine adds to it. */
const QUIET_MS = 400;
const ASKED = 10;
const ROUNDS = 2;
/** So many turns of the other one always wait. */
const BACKLOG = 100;

/** Keeps a backlog of one tenant's turns, of many lengths, until it is told to stop; resolves once none waits. */
const flooded = async (harness: FleetHarness, round: number): Promise<{ stop(): Promise<void> }> => {
  // As another machine has it: its questions do not wait behind the other's.
  const loud = harness.open();
  const ending = new AbortController();
  let count = 0;
  const waiting = async (): Promise<number> => (await loud.health()).waiting;
  const fill = async (): Promise<void> => {
    const more = Array.from({ length: BACKLOG / 2 }, () => count++);
    await Promise.all(
      more.map((at) => loud.submit(`flood-${round}-${at}`, chainOf(1, 100 + ((at * 37) % 200)), { tenant: 'loud' })),
    );
  };
  while ((await waiting()) < BACKLOG) await fill();
  const flooding = (async () => {
    while (!ending.signal.aborted) {
      if ((await waiting()) < BACKLOG) await fill();
      else await passed(50);
    }
  })();
  return {
    stop: async () => {
      ending.abort();
      await flooding;
      await until(async () => ((await waiting()) === 0 ? true : undefined), 'the end of the flood');
    },
  };
};

export const loadCases: readonly FleetHarnessCase[] = [
  {
    name: 'a node costs little more than in process',
    run: async (harness, { nodeCostMs }) => {
      if (harness.runHere === undefined) return;
      await harness.start('one');
      const [here, there]: [number[], number[]] = [[], []];
      // One after the other, so that whatever else the machine does is in both.
      for (let round = 0; round < COST_ROUNDS; round++) {
        const planned = chainOf(COST_NODES, 0);
        const keyed = planned.nodes.map((node) => ({ ...node, idempotencyKey: `here/${round}/${node.id}` }));
        here.push(await timed(async () => harness.runHere?.(plan.from(keyed))));
        const turnId = `cost-${round}`;
        there.push(
          await timed(async () => {
            await harness.engine.submit(turnId, planned);
            await eventsOf(harness.engine, turnId);
          }),
        );
      }
      const costMs = (percentile(there, FAST) - percentile(here, FAST)) / COST_NODES;
      expectThat(costMs <= nodeCostMs, `a node costs at most ${nodeCostMs} ms more than in process`, costMs);
    },
  },
  {
    name: 'workers are replaced by another version under load: no turn is lost, and none is run by two versions',
    run: async (harness) => {
      const names = Array.from({ length: DEPLOYED }, (_, at) => `v1-${at}`);
      const old = await Promise.all(names.map((name) => harness.start(name, 'v1')));
      const flow = flowOf(harness);
      await deploy(harness, old);
      const turnIds = await flow.stop();
      const ended = turnIds.map(async (turnId) => {
        const events = await eventsOf(harness.engine, turnId);
        expectWhole(turnId, events);
        return [turnId, resultOf(turnId, events)] as const;
      });
      const results = new Map(await Promise.all(ended));
      const others = [...results].filter(([, { status }]) => status !== 'completed');
      for (const [turnId, { summary, status }] of others)
        expectThat(REFUSED.test(summary), `${turnId} completes, or is refused by its version`, { summary, status });
      expectThat(others.length <= DEPLOY_REFUSED_MAX, 'only what the last worker had is refused', others.length);
      await expectOneVersion(harness, results);
    },
  },
  {
    name: 'a tenant that floods the fleet leaves the other p95 at most twice its quiet one',
    run: async (harness) => {
      await Promise.all(['one', 'two'].map((name) => harness.start(name)));
      const small = chainOf(1, QUIET_MS);
      const [alone, beside]: [number[], number[]] = [[], []];
      const ask = (turnId: string): Promise<number> =>
        timed(async () => {
          await harness.engine.submit(turnId, small, { tenant: 'quiet' });
          await eventsOf(harness.engine, turnId);
        });
      const asked = async (into: number[], prefix: string): Promise<void> => {
        for (let at = 0; at < ASKED; at++)
          into.push(...(await Promise.all(['a', 'b'].map((one) => ask(`${prefix}-${at}${one}`)))));
      };
      // What runs for the first time is slow, whoever asks.
      await (await flooded(harness, ROUNDS)).stop();
      for (let round = 0; round < ROUNDS; round++) {
        await asked(alone, `alone-${round}`);
        const flood = await flooded(harness, round);
        await asked(beside, `beside-${round}`);
        await flood.stop();
      }
      const [quietMs, floodedMs] = [percentile(alone, 0.95), percentile(beside, 0.95)];
      expectThat(floodedMs <= 2 * quietMs, 'the p95 beside a flood is at most twice the quiet one', {
        quietMs,
        floodedMs,
      });
    },
  },
];
