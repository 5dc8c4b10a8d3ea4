// Reads vitest's JSON reports: prints the counts of all as a plain line, and fails on a failed test or on a skipped one
// that does not say why.
import { readFileSync } from 'node:fs';

interface Report {
  readonly success: boolean;
  readonly numFailedTestSuites: number;
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly status: string;
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>;
  }>;
}

const paths = process.argv.slice(2);
if (paths.length === 0) throw new Error('usage: report.ts FILE...');
const reports = paths.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Report);
const files = reports.flatMap(({ testResults }) => testResults);
const tests = files.flatMap(({ assertionResults }) => assertionResults);
const passed = tests.filter(({ status }) => status === 'passed').length;
// A file that does not load has no tests to fail.
const unloaded = files.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
);
const failed = tests.filter(({ status }) => status === 'failed').length + unloaded.length;
const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
const silent = skipped.filter(({ fullName }) => !/skipped: \w/.test(fullName));

for (const { fullName } of skipped) console.log(`skipped: ${fullName}`);
for (const { fullName } of silent)
  console.error(`a skipped test says why in its name, "(skipped: the reason)": ${fullName}`);
console.log(
  `tests: ${passed} passed, ${failed + silent.length} failed${skipped.length > silent.length ? `, ${skipped.length - silent.length} skipped with their reason` : ''}`,
);
if (!reports.every(({ success }) => success) || failed > 0 || silent.length > 0 || passed === 0) process.exitCode = 1;
