import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { parse } from 'yaml';
import { fleetMetrics } from '../../src/fleet/metrics.ts';
import { promtool } from './promtool.ts';

const sinks = join(import.meta.dirname, '../../src/sinks');
const rulesPath = join(sinks, 'prometheus-rules.yml');
const unitPath = join(import.meta.dirname, 'prometheus-rules.unit.yml');

const folder = mkdtempSync(join(tmpdir(), 'spillway-rules-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const written = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: { readonly severity?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}
interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly w: number };
  readonly targets: ReadonlyArray<{ readonly expr: string; readonly datasource: { readonly uid: string } }>;
}
interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly definition?: string }> };
}

const { groups } = parse(readFileSync(rulesPath, 'utf8')) as {
  readonly groups: ReadonlyArray<{ readonly rules: readonly Rule[] }>;
};
const rules = groups.flatMap((group) => group.rules);
const recorded = new Set(rules.flatMap(({ record }) => (record === undefined ? [] : [record])));
const dashboard = JSON.parse(readFileSync(join(sinks, 'grafana-dashboard.json'), 'utf8')) as Dashboard;

/** Every name of a series that the sink gives, with its labels' names and the values of each. */
const ours = async (): Promise<Map<string, Map<string, Set<string>>>> => {
  const text = await prometheusSink({
    tools: ['search'],
    inspect: () => ({ store: { records: 1 }, retriesLeft: 1, droppedEvents: 0 }),
  }).text();
  // A worker gives these beside them.
  const fleet = fleetMetrics({
    engine: 'bullmq',
    workers: [{ worker: 'one', version: '0', turns: 1, silentMs: 0 }],
    waiting: 0,
    running: 1,
    lagMs: 0,
    stuck: [],
  });
  const names = new Map<string, Map<string, Set<string>>>();
  for (const [, name = '', labels = ''] of `${text}${fleet}`.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = names.get(name) ?? new Map<string, Set<string>>();
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g))
      known.set(label, (known.get(label) ?? new Set()).add(value));
    names.set(name, known);
  }
  return names;
};

/** What of an expression the sink does not give: a name, a label, or a label's value. */
const strange = (expr: string, names: Map<string, Map<string, Set<string>>>): string[] =>
  [...expr.matchAll(/((?:tool:|job:)?spillway_[\w:]+)(?:\{([^}]*)\})?/g)].flatMap(([, name = '', labels = '']) => {
    if (recorded.has(name)) return [];
    const known = names.get(name);
    if (known === undefined) return [name];
    return [...labels.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].flatMap(([, label = '', operator, value = '']) => {
      const values = known.get(label);
      // Prometheus itself gives this one.
      if (label === 'instance') return [];
      if (values === undefined) return [`${name}{${label}}`];
      if (label === 'tool' || label === 'effects') return [];
      return (operator?.includes('~') === true ? value.split('|') : [value])
        .filter((one) => !values.has(one))
        .map((one) => `${name}{${label}="${one}"}`);
    });
  });

describe('R-7.5 alert rules', () => {
  it('R-7.5 promtool accepts them', () => {
    const { status, said } = promtool(['check', 'rules', rulesPath]);
    expect(said).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(status).toBe(0);
  });

  it('R-7.5 each alert fires when it should and only then', () => {
    const { status, said } = promtool(['test', 'rules', unitPath]);
    expect(status, said).toBe(0);
    const tested = readFileSync(unitPath, 'utf8');
    for (const { alert } of rules) if (alert !== undefined) expect(tested).toContain(`alertname: ${alert}`);
  });

  it('R-7.5 a wrong expectation fails', () => {
    // What the test above leans on.
    const wrong = readFileSync(unitPath, 'utf8')
      .replace('../../src/sinks/prometheus-rules.yml', rulesPath)
      .replace('latency is 4.75s', 'latency is 9s');
    const { status, said } = promtool(['test', 'rules', written('wrong.yml', wrong)]);
    expect(said).toContain('latency is 9s');
    expect(status).not.toBe(0);
  });

  it('R-7.5 they ask for nothing that the sink does not give, and say what to do', async () => {
    const names = await ours();
    expect(rules.flatMap(({ expr }) => strange(expr, names))).toEqual([]);
    expect(
      strange('spillway_tool_calls_total{status="gone"} + spillway_nothing + spillway_tool_info{x="1"}', names),
    ).toEqual(['spillway_tool_calls_total{status="gone"}', 'spillway_nothing', 'spillway_tool_info{x}']);
    for (const { alert, labels, annotations } of rules) {
      if (alert === undefined) continue;
      expect(Object.keys(annotations ?? {})).toEqual(['summary', 'description', 'runbook', 'runbook_url']);
      expect(['warning', 'critical']).toContain(labels?.severity);
    }
  });
});

/** A heading as GitHub links to it. */
const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s/g, '-');

it('R-7.5 each alert links to a heading of its own, under which stands what to do', () => {
  const page = 'src/sinks/README.md';
  const text = readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  const sections = new Map(
    text
      .split(/^#{1,6} /m)
      .slice(1)
      .map((section) => [slug(section.split('\n')[0] ?? ''), section.split('\n').slice(1).join('\n').trim()]),
  );
  const alerts = rules.filter(({ alert }) => alert !== undefined);
  for (const { alert = '', annotations } of alerts) {
    const [path, anchor = ''] = (annotations?.['runbook_url'] ?? '').split('#');
    expect([path, anchor]).toEqual([page, slug(alert)]);
    expect(sections.get(anchor)?.length, `${page}#${anchor}`).toBeGreaterThan(100);
  }
  expect(new Set(alerts.map(({ annotations }) => annotations?.['runbook_url'])).size).toBe(alerts.length);
});

it('R-7.5 the page lists every metric that the sink gives, with its kind and labels, and no other', async () => {
  const text = readFileSync(join(sinks, 'README.md'), 'utf8');
  const listed = [...text.matchAll(/^\| `(spillway_\w+)` \| (\w+) \| ([^|]*)\|/gm)].map(
    ([, name, kind, labels = '']) => [name, kind, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label)],
  );
  const inspect = { store: { records: 1 }, retriesLeft: 1, droppedEvents: 0 };
  const sink = prometheusSink({ tools: ['search'], durationMs: true, inspect: () => inspect });
  let told = '';
  for await (const chunk of sink.scrape('application/openmetrics-text').chunks) told += chunk;
  const kinds = [...told.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', kind = '']) => {
    const full = kind === 'counter' ? `${name}_total` : kind === 'info' ? `${name}_info` : name;
    const [, labels = ''] = new RegExp(`^${full}(?:_count)?(?:\\{([^}]*)\\})? `, 'm').exec(told) ?? [];
    return [full, kind, [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label)];
  });
  const byName = (rows: unknown[][]): unknown[][] => rows.toSorted((a, b) => String(a[0]).localeCompare(String(b[0])));
  expect(byName(listed)).toEqual(byName(kinds));
});

describe('R-7.5 the Grafana dashboard', () => {
  const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

  it('R-7.5 every expression is PromQL', () => {
    const filled = expressions.map((expr) =>
      expr.replaceAll('$__rate_interval', '5m').replaceAll('$tool', '.*').replaceAll('$instance', '.*'),
    );
    const asRules = JSON.stringify({
      groups: [{ name: 'panels', rules: filled.map((expr, place) => ({ record: `panel:${place}`, expr })) }],
    });
    const { status, said } = promtool(['check', 'rules', written('panels.json', asRules)]);
    expect(said).toContain(`SUCCESS: ${expressions.length} rules found`);
    expect(status).toBe(0);
    expect(filled.filter((expr) => expr.includes('$'))).toEqual([]);
  });

  it('R-7.5 every expression asks for what the sink gives', async () => {
    const names = await ours();
    expect(expressions.flatMap((expr) => strange(expr, names))).toEqual([]);
    const used = expressions.join(' ');
    const shown = [...names.keys()].filter((name) => !/_(?:sum|count)$|_info$/.test(name));
    expect(shown.filter((name) => !used.includes(name))).toEqual([]);
  });

  it('R-7.5 it is one that every Grafana imports', () => {
    expect(dashboard).toMatchObject({ uid: 'spillway-tools', schemaVersion: 41 });
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'tool', 'instance']);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    expect(
      dashboard.panels.flatMap(({ targets }) => targets).filter(({ datasource }) => datasource.uid !== '${datasource}'),
    ).toEqual([]);
  });
});
