import { cpus } from 'node:os';
import { benchmarkBreaker } from './breaker.ts';
import { benchmarkExecute } from './execute.ts';
import { benchmarkFailing } from './failing.ts';
import { benchmarkGuard } from './guard.ts';
import { benchmarkKey } from './key.ts';
import { benchmarkLangGraph } from './langgraph.ts';
import { isMet, type Question, type Target } from './measure.ts';
import { benchmarkMcpProxy } from './mcp-proxy.ts';
import { benchmarkMemory } from './memory.ts';
import { benchmarkOperatorCosts } from './operator-costs.ts';
import { benchmarkPending } from './pending.ts';
import { benchmarkRedis } from './redis.ts';
import { benchmarkScaling } from './scaling.ts';
import { benchmarkSimulate } from './simulate.ts';
import { benchmarkStart } from './start.ts';
import { keyTargets, pendingTargets, redisTargets, turnTargets } from './targets.ts';
import { benchmarkTrace } from './trace.ts';
import { benchmarkTurn } from './turn.ts';

/**
 * Each with the targets that its answers are held against, where it does not state them itself. Those that measure
 * short times come first.
 */
const BENCHMARKS: ReadonlyArray<
  readonly [ask: () => Promise<Question>, targets?: (answer: Question) => readonly Target[]]
> = [
  [benchmarkBreaker],
  [benchmarkGuard],
  [benchmarkFailing],
  [benchmarkOperatorCosts],
  [benchmarkExecute],
  [benchmarkTrace],
  [benchmarkKey, keyTargets],
  [benchmarkTurn, turnTargets],
  [benchmarkLangGraph],
  [benchmarkMcpProxy],
  [benchmarkPending, pendingTargets],
  [benchmarkMemory],
  [benchmarkScaling],
  [benchmarkSimulate],
  [benchmarkRedis, redisTargets],
  [benchmarkStart],
];

const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`;
const date = new Date().toISOString().slice(0, 10);

const short = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const limitOf = ({ limit, atLeast, unit }: Target): string => `${atLeast === true ? '>=' : '<='} ${limit} ${unit}`;

const print = ({ question, figures, ratios, kilobytes = {}, table: lines, targets = [] }: Question): void => {
  process.stdout.write(`\n${question}\n`);
  if (lines !== undefined) return void process.stdout.write(`${lines.join('\n')}\n`);
  for (const { name, usPerUnit } of figures)
    process.stdout.write(`  ${usPerUnit.toFixed(2).padStart(9)} us  ${name}\n`);
  for (const [name, ratio] of Object.entries(ratios))
    process.stdout.write(`  ${ratio.toFixed(2).padStart(9)} x   ${name}\n`);
  for (const [name, size] of Object.entries(kilobytes))
    process.stdout.write(`  ${size.toFixed(2).padStart(9)} KB  ${name}\n`);
  for (const target of targets)
    process.stdout.write(
      `  ${isMet(target) ? 'met   ' : 'MISSED'}  ${short(target.value)} ${target.unit}, ${limitOf(target)}: ${target.name}\n`,
    );
};

const table = (questions: readonly Question[]): string =>
  [
    `Measured on ${date}, ${machine}.`,
    '',
    '| | measured | target | |',
    '| --- | --- | --- | --- |',
    ...questions.flatMap(({ targets = [] }) =>
      targets.map(
        (target) =>
          `| ${target.name} | ${short(target.value)} ${target.unit} | ${limitOf(target)} | ${isMet(target) ? 'met' : 'missed'} |`,
      ),
    ),
    '',
  ].join('\n');

/**
 * `npm run bench`: asks every question, in under five minutes, and prints the answers with their targets. `--json`
 * prints JSON, `--markdown` the table of targets, `--long` makes ten million calls where memory is asked about, and a
 * word asks only the questions that have it in them. With `--check` it ends with 1 where a target is missed.
 */
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const words = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const quiet = flags.includes('--json') || flags.includes('--markdown');
const questions: Question[] = [];
for (const [ask, targets] of BENCHMARKS) {
  if (words.length > 0 && !words.some((word) => ask.name.toLowerCase().includes(word.toLowerCase()))) continue;
  const startedAtMs = performance.now();
  const answer = await ask();
  const question = targets === undefined ? answer : { ...answer, targets: targets(answer) };
  questions.push(question);
  if (!quiet) print(question);
  process.stderr.write(`${ask.name}: ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s\n`);
}
if (flags.includes('--json'))
  process.stdout.write(
    `${JSON.stringify({ date, machine, questions: questions.map((question) => ({ ...question, targets: question.targets?.map((target) => ({ ...target, met: isMet(target) })) })) }, undefined, 2)}\n`,
  );
if (flags.includes('--markdown')) process.stdout.write(table(questions));
if (flags.includes('--check') && !questions.flatMap(({ targets = [] }) => targets).every(isMet)) process.exitCode = 1;
