import { addEvent } from '../inspect/model/add.ts';
import { emptyTrace } from '../inspect/model/empty.ts';
import { UNICODE } from '../inspect/share/glyphs.ts';
import { drawMarbles } from '../inspect/share/marbles-text.ts';
import { marbleTest, type MarbleTest } from '../inspect/share/marble-test.ts';
import type { FindingKind, ExploreVerdict } from './judge.ts';
import { scheduleWords, type Schedule } from './schedule.ts';
import type { Setup } from './setup.ts';
import { storyOf } from './story.ts';

/** A schedule that the plan does not survive. */
export interface Finding {
  /** What is wrong. */
  readonly kind: FindingKind;
  /** The node it is about; empty where it is the turn as a whole. */
  readonly node: string;
  /** What went wrong, in which order. */
  readonly schedule: Schedule;
  /** Both as a sentence. */
  readonly message: string;
  /** The turn as a marble diagram, drawn of its trace. */
  readonly marbles: string;
  /** A test for vitest that plays this schedule and fails until it is mended: put in where your plan and tools are. */
  readonly test: string;
  /**
   * The turn as the inspector writes it: a marble test that needs neither the plan nor its tools; or why it cannot be
   * played that way, as when something was verified or undone.
   */
  readonly marbleTest: MarbleTest;
}

const COLUMNS = 100;

const optionsSource = ({ options }: Setup, schedule: Schedule): string => {
  const { afterDeath, storeFaults, lateMs, seed, layer } = options;
  const plain = { afterDeath, storeFaults, lateMs, seed };
  const lines = Object.entries(plain).flatMap(([name, value]) =>
    value === undefined ? [] : [`    ${name}: ${JSON.stringify(value)},\n`],
  );
  const strikes = schedule.map(
    ({ node, act, attempt, request, fault }) =>
      `        { node: ${JSON.stringify(node)}, act: '${act}', attempt: ${attempt}, ` +
      `${request === undefined ? '' : `request: ${request}, `}fault: '${fault}' },\n`,
  );
  if (layer !== undefined) lines.push('    layer,\n');
  return `${lines.join('')}    schedules: [\n      [\n${strikes.join('')}      ],\n    ],\n`;
};

const testSource = (setup: Setup, schedule: Schedule, message: string): string => {
  const yours = setup.options.layer === undefined ? 'plan, tools' : 'plan, tools, layer';
  return [
    '// Put in where your plan and its tools are.',
    `import { ${yours} } from './plan.ts';`,
    "import { exploreFaults } from 'spillway/testing/explore';",
    "import { expect, it } from 'vitest';",
    '',
    `it(${JSON.stringify(message)}, async () => {`,
    '  const { findings } = await exploreFaults(plan, tools, {',
    `${optionsSource(setup, schedule)}  });`,
    '  expect(findings.map(({ message }) => message)).toEqual([]);',
    '});',
    '',
  ].join('\n');
};

/** Draws a finding, and writes it as a test: its schedule is run once more, and listened to. */
export const findingOf = async (
  setup: Setup,
  schedule: Schedule,
  { kind, node, message }: ExploreVerdict,
): Promise<Finding> => {
  const model = emptyTrace();
  await storyOf(setup, schedule, (event) => addEvent(model, event));
  const [turn] = model.turns.values();
  const sentence = `${scheduleWords(schedule)}: ${message}`;
  const paint = (_: unknown, text: string): string => text;
  return {
    kind,
    node,
    schedule,
    message: sentence,
    marbles: turn === undefined ? '' : drawMarbles(turn, { columns: COLUMNS, glyphs: UNICODE, paint }),
    test: testSource(setup, schedule, sentence),
    marbleTest: turn === undefined ? { refused: 'the trace tells of no turn' } : marbleTest(model, turn),
  };
};
