import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readScenarioFile, simulate, stormText, type ScenarioFile, type StormReport } from 'spillway/simulate';
import { chartsSvg, stormPage } from '../../src/simulate/charts.ts';
import { expectationLines, tableOf } from '../../src/simulate/storm/report.ts';

const folder = new URL('../../src/simulate/gallery/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
const page = readFileSync(new URL('../README.md', folder), 'utf8');
const scenario = (name: string): ScenarioFile => readScenarioFile(read(`${name}.yaml`), `${name}.yaml`);
const NAMES = readdirSync(folder).flatMap((name) => (name.endsWith('.yaml') ? [name.slice(0, -5)] : []));

/** The lists of numbers in a picture, in the order of the policies. */
const shown = (svg: string, series: string): number[][] =>
  [...svg.matchAll(new RegExp(`data-series="${series}" data-values="([^"]*)"`, 'g'))].map(([, values = '']) =>
    values.split(' ').map(Number),
  );

describe('the gallery', () => {
  it.each(NAMES)('%s: page, table and picture are what the command makes now, and its expectations hold', (name) => {
    const report = simulate(scenario(name));
    expect(report.holds).toBe(true);
    expect(read(`${name}.svg`)).toBe(chartsSvg(report));
    expect(page).toContain(`\`\`\`text\n${stormText(report).trimEnd()}\n\`\`\``);
    expect(page).toContain(`(gallery/${name}.svg)`);
  });
});

describe('a report', () => {
  const small = (seeds = 3): StormReport => simulate({ ...scenario('budget'), duration_s: 50 }, { seeds });

  it('SIM-1 is the same to the last byte for the same seeds, and another for others', () => {
    const once = JSON.stringify(small());
    expect(JSON.stringify(small())).toBe(once);
    expect(JSON.stringify(simulate({ ...scenario('budget'), duration_s: 50, seed: 9 }, { seeds: 3 }))).not.toBe(once);
  });

  it('SIM-5 is in its charts: every list of numbers, and every band of a breaker', () => {
    const report = small(1);
    const svg = chartsSvg(report);
    for (const series of ['offered', 'attempts', 'succeeded', 'p95', 'retryShare'] as const)
      expect(shown(svg, series)).toEqual(report.policies.map((policy) => policy.series[series]));
    const bands = report.policies.flatMap(({ series }) => series.bands);
    expect(bands.length).toBeGreaterThan(0);
    for (const { toolName, state, fromS, toS } of bands)
      expect(svg).toContain(`data-band="${toolName} ${state} ${fromS} ${toS}"`);
  });

  it('is a page that runs and loads nothing, whatever a scenario is called', () => {
    const report = { ...small(1), scenario: '<script>alert(1)</script>"&' };
    const html = stormPage(report, tableOf(report), report.policies.flatMap(expectationLines));
    expect(html).not.toContain('<script');
    expect(html).not.toMatch(/(?:src|href)=/);
    expect(html).toContain("default-src 'none'");
    expect(html).toContain('<th scope="row">three attempts</th>');
  });
});
