import type { FleetHealth } from '../contract/fleet/port.ts';

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

const gauge = (name: string, help: string, samples: readonly Sample[]): string => {
  const lines = samples.map(({ labels, value }) => {
    const all = Object.entries(labels ?? {}).map(([label, text]) => `${label}="${escaped(text)}"`);
    return `${name}${all.length === 0 ? '' : `{${all.join(',')}}`} ${value}`;
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...lines, ''].join('\n');
};

/**
 * How a fleet stands, as Prometheus reads it. Every worker tells the same of the fleet: ask one of them, or take the
 * maximum over all.
 *
 * @param health what `health()` gave
 * @param prefix what every name begins with
 *
 * @example
 * response.end(fleetMetrics(await fleet.health()));
 */
export function fleetMetrics(health: FleetHealth, prefix = 'spillway'): string {
  const { engine, workers, waiting, running, lagMs, stuck } = health;
  const name = (rest: string): string => `${prefix}_fleet_${rest}`;
  const byVersion = Object.entries(Object.groupBy(workers, ({ version }) => version));
  return [
    gauge(name('turns'), 'Turns that have not settled, by state.', [
      { labels: { engine, state: 'waiting' }, value: waiting },
      { labels: { engine, state: 'running' }, value: running },
    ]),
    gauge(name('lag_seconds'), 'How long the oldest waiting turn has waited.', [
      { labels: { engine }, value: lagMs / 1_000 },
    ]),
    gauge(name('stuck_turns'), 'Turns whose deadline passed more than 10 s ago.', [
      { labels: { engine }, value: stuck.length },
    ]),
    gauge(
      name('workers'),
      'Workers that were heard of in the last 30 s, by version of their tools.',
      byVersion.map(([version, all]) => ({ labels: { engine, version }, value: all?.length ?? 0 })),
    ),
    gauge(
      name('worker_turns'),
      'Turns that a worker runs.',
      workers.map(({ worker, turns }) => ({ labels: { engine, worker }, value: turns })),
    ),
  ].join('');
}
