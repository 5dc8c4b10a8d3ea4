import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { aiSdk } from './frameworks/ai-sdk.ts';
import { anthropic } from './frameworks/anthropic.ts';
import { CANARY, type Framework } from './frameworks/kit.ts';
import { langChainWith, loadLangChain } from './frameworks/langchain.ts';
import { mcp, mcp2 } from './frameworks/mcp.ts';
import { openaiAgents, openaiAgentsDefault } from './frameworks/openai-agents.ts';
import { SCENARIOS, measure, toldOf, worded, type Measured, type Scenario } from './measure.ts';

/**
 * Every framework with its real package and a scripted model, on its own and guarded. `UPDATE=1` writes the table anew.
 */
const TABLE = join(import.meta.dirname, 'side-by-side.md');

interface Row {
  readonly framework: Framework;
  readonly scenario: Scenario;
  readonly alone: Measured;
  readonly guarded: Measured;
}
let rows: readonly Row[] = [];

beforeAll(async () => {
  const frameworks: readonly Framework[] = [
    aiSdk,
    anthropic,
    openaiAgents,
    openaiAgentsDefault,
    langChainWith(await loadLangChain()),
    mcp,
    mcp2,
  ];
  const measured: Row[] = [];
  // One after the other, so that a busy machine does not make one wait for another.
  for (const framework of frameworks) {
    const side = async (scenario: Scenario): Promise<Row> => {
      const [alone, guarded] = await Promise.all([
        measure(framework, scenario, false),
        measure(framework, scenario, true),
      ]);
      return { framework, scenario, alone, guarded };
    };
    measured.push(...(await Promise.all(SCENARIOS.map(side))));
  }
  rows = measured;
}, SIDE_INSTALL_TIMEOUT_MS);

const about = ({ framework, scenario }: Row): string => `${framework.name}: ${scenario.title}`;

const table = (): string => {
  const lines = rows.map(
    ({ framework, scenario, alone, guarded }) =>
      `| ${framework.name} | ${scenario.title} | ${worded(alone, scenario, false)} | ${worded(guarded, scenario, true)} |`,
  );
  const head = [
    '# Frameworks on their own and guarded',
    '',
    'Measured by `side-by-side.test.ts` against the real packages with scripted models; `UPDATE=1` writes this page anew. The slow tool takes 10 s',
    'and does not look at its signal; timeouts are 200 ms, and on its own a framework has its own timeout set where it has one. A run that has not',
    'settled after 3 s hangs. The thrown message holds a secret. Guarded, OpenAI Agents also runs with `toolNotFoundBehavior` set; a run that throws is',
    'resumed once, with `resumeMessages` of its harvest, and what the model is told then counts.',
    '',
    '| framework | case | on its own | guarded |',
    '|---|---|---|---|',
  ];
  return `${[...head, ...lines].join('\n')}\n`;
};

describe('frameworks, guarded', () => {
  it('R-4.1 every run settles in time, whatever a tool does with its signal', () => {
    expect(rows.filter(({ guarded }) => guarded.end === 'hangs').map(about)).toEqual([]);
    expect(
      rows
        .filter(({ guarded, scenario }) => guarded.end !== (scenario.abort === true ? 'throws' : 'answers'))
        .map(about),
    ).toEqual([]);
  });

  it('R-12.3 results of siblings are kept, also when the caller’s abort makes the run throw', () => {
    const settled = rows.filter(({ guarded }) => guarded.end !== 'hangs');
    expect(settled.length).toBe(35);
    expect(
      settled
        .filter(({ guarded, scenario }) => guarded.seen.told.get(scenario.sibling ?? '')?.includes('fine') !== true)
        .map(about),
    ).toEqual([]);
  });

  it('R-12.4 the model sees an honest error', () => {
    const expected: Readonly<Record<string, string>> = {
      'a tool ignores its signal': 'it may have taken effect',
      'a tool throws': 'it may have taken effect',
      'bad arguments': 'the input does not fit',
      'an unknown tool': 'there is no such tool',
      'the caller aborts': 'it may have taken effect',
    };
    const told = rows.map((row) => [
      about(row),
      toldOf(row.guarded.seen.told.get(row.scenario.failing)),
      expected[row.scenario.title],
    ]);
    expect(told.filter(([, text, wanted]) => wanted !== undefined && text !== wanted)).toEqual([]);
  });

  it('R-11.4 R-12.4 nothing secret reaches the model, nor what a run throws', () => {
    expect(rows.filter(({ alone }) => alone.seen.shown.includes(CANARY)).length).toBeGreaterThan(0);
    expect(rows.filter(({ guarded }) => guarded.seen.shown.includes(CANARY)).map(about)).toEqual([]);
    expect(
      rows
        .filter(({ guarded }) => inspect(guarded.error, { depth: Infinity, showHidden: true }).includes(CANARY))
        .map(about),
    ).toEqual([]);
  });

  it('R-12.2 bad arguments and unknown tools run nothing', () => {
    const wrong = rows.filter(({ scenario }) => ['bad arguments', 'an unknown tool'].includes(scenario.title));
    expect(wrong.filter(({ guarded }) => guarded.seen.ran.some((name) => name !== 'good')).map(about)).toEqual([]);
  });

  it('the table in this folder is what is measured', () => {
    if (process.env['UPDATE'] === '1') writeFileSync(TABLE, table());
    expect(table()).toBe(readFileSync(TABLE, 'utf8'));
  });
});
