import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createSpillway, plan, tool, type Spillway, type ToolPolicy } from 'spillway';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { reset } from './kit.ts';
import { freePort } from '../free-port.ts';
import {
  serveMetrics,
  startPrometheus,
  type MetricsServer,
  type Prometheus,
  type Sample,
} from './prometheus-server.ts';

const sinks = join(import.meta.dirname, '../../src/sinks');
const { panels } = JSON.parse(readFileSync(join(sinks, 'grafana-dashboard.json'), 'utf8')) as {
  panels: Array<{ title: string; targets: Array<{ expr: string }> }>;
};
const filled = (expr: string, instance = '.*'): string =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll('$tool', '.*').replaceAll('$instance', instance);
const panel = (title: string, instance?: string): string =>
  filled(panels.find((one) => one.title === title)?.targets[0]?.expr ?? '', instance);

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const read: ToolPolicy = {
  effects: 'read',
  breaker: false,
  retry: { maxAttempts: 2, initialDelayMs: 1, jitterPercent: 0 },
};

/** A process with work of its own, of which it does `share` times as much as the first. */
class Process {
  readonly share: number;
  readonly name: string;
  readonly spillway: Spillway;
  readonly #sink: ReturnType<typeof prometheusSink>;
  readonly #port: number;
  #server: MetricsServer | undefined;
  release: () => void = () => undefined;

  constructor(port: number, share: number) {
    this.#port = port;
    this.share = share;
    this.name = `127.0.0.1:${port}`;
    const tools = [
      tool({ name: 'search', policy: read, execute: () => 'found' }),
      tool({
        name: 'shaky',
        policy: read,
        execute: (_: unknown, { attempt }) => (attempt === 1 ? Promise.reject(reset()) : 1),
      }),
      tool({
        name: 'down',
        policy: { ...read, retry: { maxAttempts: 1 }, breaker: { failureThreshold: 2, cooldownMs: 300_000 } },
        execute: () => Promise.reject(reset()),
      }),
      tool({ name: 'slow', policy: read, execute: () => new Promise<void>((done) => (this.release = done)) }),
    ];
    this.spillway = createSpillway({ tools });
    this.#sink = prometheusSink({ tools, inspect: () => this.spillway.inspect() });
    this.spillway.trace$.subscribe(this.#sink);
  }

  async start(): Promise<void> {
    this.#server = await serveMetrics(this.#sink, this.#port);
  }

  async work(): Promise<void> {
    const { spillway } = this;
    for (let n = 0; n < this.share; n++) {
      await spillway.execute({ toolName: 'search', traceparent: `00-${TRACE_ID}-000000000000000${this.share}-01` });
      await spillway.execute({ toolName: 'shaky' });
      for (const input of [1, 1])
        await spillway.execute({ toolName: 'search', idempotencyKey: `k${n}`, session: 's', input });
      await spillway.execute({ toolName: `made up ${n}` });
      const trip = plan.from([
        { id: 'a', tool: 'search', input: undefined },
        { id: 'b', tool: 'shaky', input: undefined, optional: true },
      ]);
      await new Promise<void>((done) => {
        spillway.turn(trip).subscribe({ complete: done });
      });
    }
    await spillway.execute({ toolName: 'search', idempotencyKey: 'k0', session: 's', input: 2 });
  }

  async stop(): Promise<void> {
    this.release();
    await this.#server?.stop();
    await this.spillway.close();
  }
}

describe('R-7.5 what three instances count', { timeout: 240_000 }, () => {
  let prometheus: Prometheus;
  let all: Process[];
  let running = 3;
  const [CALLS, SHARES] = ['spillway_tool_calls_total', [1, 2, 3]] as const;
  const total = SHARES.reduce((sum, share) => sum + share, 0);
  beforeAll(async () => {
    const ports = await Promise.all(SHARES.map(freePort));
    all = ports.map((port, index) => new Process(port, SHARES[index] ?? 0));
    await Promise.all(all.map((one) => one.start()));
    prometheus = await startPrometheus(ports, [join(sinks, 'prometheus-rules.yml')]);
    await shows('sum(up)', [3]);
    // Seen at rest first, so that what rises is seen to rise.
    await shows(`count(${CALLS}{tool="search",status="success",scope="turn"})`, [3]);
    const [, second, third] = all as [Process, Process, Process];
    await Promise.all(all.map((one) => one.work()));
    for (let n = 0; n < 2; n++) await third.spillway.execute({ toolName: 'down' });
    await second.spillway.orderBreakers('force_open', { tool: 'down' });
    second.spillway.trace$.subscribe(({ type }) => {
      if (type === 'rejected') throw new Error('a subscriber that throws');
    });
    await second.spillway.execute({ toolName: 'down' });
    void second.spillway.execute({ toolName: 'slow' });
    await shows('sum(spillway_turns_total)', [total]);
    await shows('sum(spillway_tool_calls_in_flight)', [1]);
  }, 240_000);
  /** Until Prometheus has seen it. */
  const shows = async (expr: string, wanted: readonly number[]): Promise<void> => {
    const seen = async (): Promise<void> => expect(await values(expr)).toEqual(wanted);
    await vi.waitFor(seen, { timeout: 60_000, interval: 200 });
  };
  afterAll(async () => {
    await Promise.all([...all.map((one) => one.stop()), prometheus.stop()]);
  });

  /** At a time at which all that run were seen: one that a busy machine keeps from answering has no series. */
  const query = async (expr: string): Promise<readonly Sample[]> => {
    const atMs = await vi.waitFor(
      async () => {
        // What a scrape found is written after it; this is past for all of them.
        const seenAtMs = Date.now() - 2_000;
        expect(await prometheus.query('sum(up)', seenAtMs)).toMatchObject([{ value: running }]);
        return seenAtMs;
      },
      { timeout: 60_000, interval: 200 },
    );
    return prometheus.query(expr, atMs);
  };
  const values = async (expr: string): Promise<number[]> =>
    (await query(expr)).map(({ value }) => value).toSorted((a, b) => a - b);
  const by = async (label: string, expr: string): Promise<Record<string, number>> =>
    Object.fromEntries((await query(expr)).map(({ metric, value }) => [metric[label] ?? '', value]));
  const ofShares = (factor: number, more = 0): Record<string, number> =>
    Object.fromEntries(all.map(({ name, share }) => [name, factor * share + more]));

  it('R-7.5 calls, histograms and in-flight gauges are those of each instance, and add up', async () => {
    expect(await by('instance', `sum by (instance) (${CALLS}{tool="search",status="success"})`)).toEqual(ofShares(4));
    expect(await by('instance', `sum by (instance) (${CALLS}{tool="search",scope="turn"})`)).toEqual(ofShares(1));
    expect(await values(`sum(${CALLS}{tool="__other__"})`)).toEqual([total]);
    expect(await values(`count(${CALLS}{tool=~"made.*"}) or vector(0)`)).toEqual([0]);
    const counted = 'sum by (instance, tool) (spillway_tool_call_duration_seconds_count)';
    expect(
      await values(`${counted} - on (instance, tool) sum by (instance, tool) (${CALLS}) != 0 or vector(0)`),
    ).toEqual([0]);
    const whole = 'sum by (instance, tool, status) (spillway_tool_call_duration_seconds_bucket{le="+Inf"})';
    expect(
      await values(
        `${whole} - on (instance, tool, status) spillway_tool_call_duration_seconds_count != 0 or vector(0)`,
      ),
    ).toEqual([0]);
    const flying = Object.fromEntries(all.map(({ name, share }) => [name, share === 2 ? 1 : 0]));
    expect(await by('instance', 'spillway_tool_calls_in_flight{tool="slow"}')).toEqual(flying);
    expect(await by('tool', panel('Calls in flight'))).toMatchObject({ slow: 1, search: 0 });
  });

  it('R-7.5 retries, errors, keys and turns are those of each instance', async () => {
    expect(await by('instance', 'sum by (instance) (spillway_tool_retry_attempts_total{tool="shaky"})')).toEqual(
      ofShares(2),
    );
    expect(
      await by('instance', 'sum by (instance) (spillway_tool_errors_total{tool="shaky",error_type="transport_error"})'),
    ).toEqual(ofShares(2));
    expect(await by('instance', 'spillway_tool_idempotency_hits_total{tool="search",state="done"}')).toEqual(
      ofShares(1),
    );
    expect(await by('instance', 'spillway_tool_idempotency_hits_total{tool="search",state="conflict"}')).toEqual(
      ofShares(0, 1),
    );
    expect(await by('instance', 'sum by (instance) (spillway_turn_nodes_total)')).toEqual(ofShares(2));
    expect(await values('sum(spillway_turn_harvested_ratio_sum) / sum(spillway_turn_harvested_ratio_count)')).toEqual([
      1,
    ]);
    expect(await by('instance', panel('Trace events lost'))).toMatchObject({ [all[0]?.name ?? '']: 0 });
    expect(await values('sum(spillway_trace_events_dropped_total)')).toEqual([1]);
    expect(await values('min(spillway_retry_budget_left) > 90')).toHaveLength(1);
  });

  it('R-3.8 each breaker of each instance is in one state, and the panel shows the worst', async () => {
    expect(
      await values('count(sum by (instance, tool) (spillway_tool_circuit_breaker_state) != 1) or vector(0)'),
    ).toEqual([0]);
    expect(await by('tool', panel('Circuit breakers'))).toMatchObject({ down: 4 });
    const states = await Promise.all(all.map(({ name }) => by('tool', panel('Circuit breakers', name))));
    expect(states.map(({ down }) => down)).toEqual([0, 4, 3]);
    const opened = 'sum by (instance) (spillway_tool_circuit_breaker_transitions_total{tool="down",to_state="open"})';
    expect(await by('instance', opened)).toEqual(
      Object.fromEntries(all.map(({ name, share }) => [name, share === 3 ? 1 : 0])),
    );
  });

  it('R-7.5 info, versions, store and exemplars: one of each, however many instances there are', async () => {
    expect(await values('count by (tool) (spillway_tool_info)')).toEqual([3, 3, 3, 3]);
    expect(await values('count by (tool) (max by (tool, effects) (spillway_tool_info))')).toEqual([1, 1, 1, 1]);
    expect(await values(panel('Versions'))).toEqual([3]);
    expect(await values(panel('Store'))).toEqual([1]);
    const exemplars = await prometheus.exemplars(`${CALLS}{tool="search"}`);
    expect(new Set(exemplars.map(({ trace_id }) => trace_id))).toEqual(new Set([TRACE_ID]));
    const spans = exemplars.map(({ span_id }) => Number(span_id)).filter((span) => span > 0);
    expect(new Set(spans)).toEqual(new Set(SHARES));
  });

  it('R-7.5 every panel and rule holds for the two that are left, and says so of the third', async () => {
    const third = all[2];
    await third?.stop();
    running = 2;
    await expect.poll(() => values(`count(count by (instance) (${CALLS}))`)).toEqual([2]);
    for (const { targets } of panels) for (const { expr } of targets) await prometheus.query(filled(expr));
    const unwell = (await prometheus.rules()).filter(({ health }) => health !== 'ok');
    expect(unwell).toEqual([]);
    expect(await by('tool', panel('Circuit breakers'))).toMatchObject({ down: 4 });
    const pending = async (): Promise<unknown> =>
      (await prometheus.query('ALERTS{alertname="SpillwayInstanceDown"}')).map(({ metric }) => metric['instance']);
    await expect.poll(pending).toEqual([third?.name]);
  });
});
