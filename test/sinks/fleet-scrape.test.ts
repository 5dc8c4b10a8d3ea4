import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type Spillway, type ToolPolicy } from 'spillway';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { parse } from 'yaml';
import { redisStore } from 'spillway/stores/redis';
import type { FleetEngine } from '../../src/contract.ts';
import { fleetMetrics } from '../../src/fleet/metrics.ts';
import { startFleet, type Fleet } from '../fleet/kit.ts';
import { reset } from './kit.ts';
import { freePort } from '../free-port.ts';
import { serveMetrics, startPrometheus, type MetricsServer, type Prometheus } from './prometheus-server.ts';

const sinks = join(import.meta.dirname, '../../src/sinks');
const rulesPath = join(sinks, 'prometheus-rules.yml');
const { groups } = parse(readFileSync(rulesPath, 'utf8')) as {
  groups: Array<{ rules: Array<{ alert?: string; record?: string; expr: string }> }>;
};
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(readFileSync(join(sinks, 'grafana-dashboard.json'), 'utf8')) as {
  panels: Array<{ title: string; targets: Array<{ expr: string }> }>;
};
const panelOf = (title: string): string => panels.find((panel) => panel.title === title)?.targets[0]?.expr ?? '';
const filled = (expr: string, instance = '.*'): string =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll('$tool', '.*').replaceAll('$instance', instance);

const once: ToolPolicy = {
  effects: 'read',
  retry: { maxAttempts: 2, initialDelayMs: 1, jitterPercent: 0 },
  breaker: false,
};
const down = tool({
  name: 'down',
  policy: { ...once, breaker: { failureThreshold: 2, cooldownMs: 300_000 } },
  execute: () => Promise.reject(reset()),
});
const search = tool({ name: 'search', policy: { ...once, breaker: {} }, execute: () => 'found' });
const shadowed = tool({
  name: 'shadowed',
  policy: { ...once, mode: 'shadow' },
  execute: () => Promise.reject(reset()),
});
const shaky = tool({
  name: 'shaky',
  policy: once,
  execute: (_: unknown, { attempt }) => (attempt === 1 ? Promise.reject(reset()) : 'at last'),
});
const TOOLS = [down, search, shadowed, shaky];

/** One process of the fleet, as far as Prometheus can see. */
class Instance {
  readonly #port: number;
  readonly #fleet: Fleet;
  readonly #engine: FleetEngine;
  readonly spillway: Spillway = createSpillway({ tools: TOOLS });
  readonly #sink = prometheusSink({ tools: TOOLS, inspect: () => this.spillway.inspect() });
  #server: MetricsServer | undefined;

  constructor(port: number, fleet: Fleet) {
    this.#port = port;
    this.#fleet = fleet;
    this.#engine = fleet.open();
    this.spillway.trace$.subscribe(this.#sink);
  }

  get name(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const layer = createSpillway({ tools: [search], store: redisStore(this.#fleet.redis) });
    await this.#engine.serve({ layer, worker: `at-${this.#port}` }).ready;
    const told = async (): Promise<string> => fleetMetrics(await this.#engine.health());
    this.#server = await serveMetrics(this.#sink, this.#port, true, told);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    await this.#engine.close();
    await this.spillway.close();
  }

  /** Something of everything that is counted. */
  async work(): Promise<void> {
    for (const toolName of ['down', 'down', 'search', 'shadowed', 'shaky']) await this.spillway.execute({ toolName });
    for (let n = 0; n < 2; n++) await this.spillway.execute({ toolName: 'search', idempotencyKey: 'k', session: 's' });
    const trip = plan().call('a', search, undefined).call('b', shaky, undefined);
    await new Promise<void>((done) => {
      this.spillway.turn(trip).subscribe({ complete: done });
    });
  }
}

describe('R-7.5 rules and dashboard on a real Prometheus', () => {
  let prometheus: Prometheus;
  let instances: Instance[];
  let fleet: Fleet;
  beforeAll(async () => {
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    fleet = await startFleet();
    instances = ports.map((port) => new Instance(port, fleet));
    prometheus = await startPrometheus(ports, [rulesPath]);
  });
  afterAll(async () => {
    await Promise.all([...instances.map((instance) => instance.stop()), prometheus.stop()]);
    await fleet.stop();
  });

  const isUp = async (instance: Instance): Promise<number | undefined> =>
    (await prometheus.query(`up{instance="${instance.name}"}`))[0]?.value;
  /** Seen at rest first, so that what rises is seen to rise. */
  const enter = async (instance: Instance): Promise<void> => {
    await instance.start();
    await expect.poll(() => isUp(instance)).toBe(1);
    await instance.work();
  };
  /** What is wrong with rules and panels now: those in error, and those that show nothing. */
  const wrong = async (): Promise<string[]> => {
    const unwell = (await prometheus.rules()).flatMap(({ name, health, lastError }) =>
      health === 'ok' ? [] : [`${name}: ${health} ${lastError ?? ''}`],
    );
    const asked = [
      ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, filled(expr)] as const)),
      ...rules.flatMap(({ record, expr }) => (record === undefined ? [] : [[record, expr] as const])),
    ];
    const empty = await Promise.all(
      asked.map(async ([title, expr]) => ((await prometheus.query(expr)).length === 0 ? [`${title}: nothing`] : [])),
    );
    return [...unwell, ...empty.flat()];
  };
  const breakers = async (instance?: string): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await prometheus.query(filled(panelOf('Circuit breakers'), instance))).map(({ metric, value }) => [
        metric['tool'],
        value,
      ]),
    );
  /** What the rule of slow read tools compares with its limit. */
  const latencies = async (): Promise<string[]> => {
    const expr = rules.find(({ alert }) => alert === 'SpillwayReadToolLatencyHigh')?.expr ?? '';
    return (await prometheus.query(expr.replace('> 2.5', '>= 0')))
      .map(({ metric }) => metric['tool'] ?? '')
      .toSorted((a, b) => a.localeCompare(b));
  };
  const holds = async (): Promise<void> => {
    await expect.poll(wrong, { interval: 300 }).toEqual([]);
    await expect.poll(latencies, { interval: 300 }).toEqual(['down', 'search', 'shadowed', 'shaky']);
  };

  it('R-7.5 one instance, then two and three, then one is lost: no rule is in error, and every panel shows something', async () => {
    const [first, second, third] = instances as [Instance, Instance, Instance];
    await enter(first);
    await holds();
    await enter(second);
    await holds();
    // Two open breakers are one that is open, and not one that is disabled.
    await expect.poll(() => breakers()).toMatchObject({ down: 3, search: 0, shaky: 1 });
    await enter(third);
    await third.spillway.orderBreakers('force_open', { tool: 'down' });
    await holds();
    await expect.poll(() => breakers()).toMatchObject({ down: 4, search: 0 });
    expect(await breakers(first.name)).toMatchObject({ down: 3, search: 0 });
    await third.stop();
    await expect.poll(() => isUp(third)).toBe(0);
    await holds();
    await expect.poll(() => breakers()).toMatchObject({ down: 3, search: 0 });
    const lost = rules.find(({ alert }) => alert === 'SpillwayInstanceDown')?.expr ?? '';
    expect((await prometheus.query(lost)).map(({ metric }) => metric['instance'])).toEqual([third.name]);
  }, 240_000);
});
