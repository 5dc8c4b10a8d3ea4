import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { aiSdk } from './frameworks/ai-sdk.ts';
import { loadAll } from './frameworks/all.ts';
import { anthropic } from './frameworks/anthropic.ts';
import { CANARY, nothingSeen, type Framework } from './frameworks/kit.ts';
import { mcp, mcp2 } from './frameworks/mcp.ts';
import { openaiAgents, openaiAgentsDefault } from './frameworks/openai-agents.ts';
import { openaiMcp } from './frameworks/openai-mcp.ts';
import { SCENARIOS, WRONG_CALLS, measure, toldOf, type Measured, type Scenario } from './measure.ts';
import { page, type Row } from './page.ts';

/**
 * Every framework with its real package and a scripted model, on its own and guarded. `UPDATE=1` writes the table anew.
 */
const TABLE = join(import.meta.dirname, 'side-by-side.md');

let all: readonly Row[] = [];
/** Those that are measured, and not told. */
let rows: readonly Row[] = [];
const isTold = ({ framework, scenario }: Pick<Row, 'framework' | 'scenario'>): boolean =>
  framework.told?.[scenario.title] !== undefined;
/** An unknown tool ends some runs before any adapter is asked. */
const isOurs = ({ framework, scenario }: Row): boolean =>
  scenario.title !== 'an unknown tool' || framework.unknownEnds !== true;

const side = async (framework: Framework, scenario: Scenario, guarded: boolean): Promise<Measured> =>
  isTold({ framework, scenario }) ? { end: 'throws', seen: nothingSeen() } : measure(framework, scenario, guarded);

beforeAll(async () => {
  const frameworks: readonly Framework[] = [
    aiSdk,
    anthropic,
    openaiAgents,
    openaiAgentsDefault,
    openaiMcp,
    ...(await loadAll()),
    mcp,
    mcp2,
  ];
  const measured: Row[] = [];
  // One after the other, so that a busy machine does not make one wait for another.
  for (const framework of frameworks) {
    // What a framework loads with its first run is not measured.
    await framework.run({ calls: [{ id: 'c1', name: 'good', input: {} }], guarded: true }, nothingSeen());
    const both = async (scenario: Scenario): Promise<Row> => {
      const [alone, guarded] = await Promise.all([side(framework, scenario, false), side(framework, scenario, true)]);
      return { framework, scenario, alone, guarded };
    };
    measured.push(...(await Promise.all(SCENARIOS.map(both))));
  }
  all = measured;
  rows = measured.filter((row) => !isTold(row));
}, SIDE_INSTALL_TIMEOUT_MS);

const about = ({ framework, scenario }: Row): string => `${framework.name}: ${scenario.title}`;

describe('frameworks, guarded', () => {
  it('R-4.1 every run settles in time, whatever a tool does with its signal', () => {
    expect(rows.filter(({ guarded }) => guarded.end === 'hangs').map(about)).toEqual([]);
    expect(
      rows
        .filter(isOurs)
        .filter(({ guarded, scenario }) => guarded.end !== (scenario.abort === true ? 'throws' : 'answers'))
        .map(about),
    ).toEqual([]);
  });

  it('R-12.3 results of siblings are kept, also when the caller’s abort makes the run throw', () => {
    expect(rows.length).toBeGreaterThan(80);
    expect(
      rows
        .filter(isOurs)
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
      'the connection breaks after a payment': 'it may have taken effect',
    };
    const looked = rows
      .filter(isOurs)
      .filter(({ framework, scenario }) => framework.unchecked !== true || scenario.title !== 'bad arguments');
    const told = looked.map((row) => [
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
    const wrong = rows.filter(
      ({ scenario, framework }) => WRONG_CALLS.includes(scenario.title) && framework.unchecked !== true,
    );
    expect(wrong.filter(({ guarded }) => guarded.seen.ran.some((name) => name !== 'good')).map(about)).toEqual([]);
  });

  it('R-2.5 a payment whose connection breaks is made once, also where the framework itself tries tools again', () => {
    const paid = ({ seen }: Measured): number => seen.ran.filter((name) => name === 'pay').length;
    const payments = rows.filter(({ scenario }) => scenario.title === 'the connection breaks after a payment');
    expect(payments.filter(({ guarded }) => paid(guarded) !== 1).map(about)).toEqual([]);
    expect(payments.filter(({ alone }) => paid(alone) > 1).length).toBeGreaterThan(0);
  });

  it('the table in this folder is what is measured', () => {
    if (process.env['UPDATE'] === '1') writeFileSync(TABLE, page(all));
    expect(page(all)).toBe(readFileSync(TABLE, 'utf8'));
  });
});
