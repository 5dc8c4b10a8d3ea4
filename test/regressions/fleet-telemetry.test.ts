// Was: a scrape looked through all breakers for each tool and made one string, and states and infos of two instances
// were added up. Now: each breaker is looked at once, an answer comes in pieces, and the worst instance counts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { prometheusSink, type ListedBreaker } from 'spillway/sinks/prometheus';

const sinks = join(import.meta.dirname, '../../src/sinks');

it('R-7.5 a scrape looks at each breaker once, however many tools there are', async () => {
  let looks = 0;
  const tools = Array.from({ length: 300 }, (_, n) => `tool_${n}`);
  const breakers = tools.flatMap((toolName) =>
    ['a', 'b'].map((): ListedBreaker => ({
      toolName,
      get state() {
        looks++;
        return { type: 'open' as const };
      },
    })),
  );
  const text = await prometheusSink({ tools, inspect: () => ({ breakers }) }).text();
  expect(text.match(/state="open"\} 1$/gm)).toHaveLength(300);
  expect(looks).toBe(600);
});

it('R-7.5 no rule joins with the info of each instance, and no panel adds states up', () => {
  const rules = readFileSync(join(sinks, 'prometheus-rules.yml'), 'utf8');
  expect(rules.match(/\bspillway_(?:tool|build)_info\b/g)).toHaveLength(2);
  expect(rules).toContain('max by (tool, effects) (spillway_tool_info{');
  expect(rules).toContain('present_over_time(spillway_build_info[1h])');
  const { panels } = JSON.parse(readFileSync(join(sinks, 'grafana-dashboard.json'), 'utf8')) as {
    panels: Array<{ targets: Array<{ expr: string }> }>;
  };
  const stated = panels
    .flatMap(({ targets }) => targets.map(({ expr }) => expr))
    .filter((expr) => expr.includes('_breaker_state'));
  expect(stated.map((expr) => expr.slice(0, 12))).toEqual(['max by (tool']);
  const asked = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(
    asked.filter(
      (expr) => (expr.match(/spillway_\w+/g) ?? []).length !== (expr.match(/\{instance=~"\$instance"/g) ?? []).length,
    ),
  ).toEqual([]);
});
