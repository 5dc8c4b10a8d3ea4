// Reads vitest's JSON reports: prints the counts of all as a plain line, and fails on a failed test or on a skipped one
// that does not say why.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

interface Report {
  readonly success: boolean;
  readonly numFailedTestSuites: number;
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly status: string;
    /** Why the file itself failed. */
    readonly message?: string;
    readonly assertionResults: ReadonlyArray<{
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }>;
  }>;
}

const paths = process.argv.slice(2);
if (paths.length === 0) throw new Error('usage: report.ts FILE...');
const reports = paths.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Report);
const files = reports
  .flatMap(({ testResults }) => testResults)
  .map((file) => ({ ...file, name: relative(process.cwd(), file.name) }));
const tests = files.flatMap(({ assertionResults }) => assertionResults);
const passed = tests.filter(({ status }) => status === 'passed').length;
// A file that does not load has no tests to fail.
const unloaded = files.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
);
const failed = tests.filter(({ status }) => status === 'failed').length + unloaded.length;
const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
const silent = skipped.filter(({ fullName }) => !/skipped: \w/.test(fullName));

// The end of a long log is what is read of it: the failed ones stand there, each with the first lines of its reason.
const told = (name: string, reason = ''): void =>
  console.error(`failed: ${name}\n${reason.split('\n').slice(0, 12).join('\n')}`);
for (const { name, message } of unloaded) told(name, message);
for (const { name, assertionResults } of files)
  for (const { fullName, status, failureMessages } of assertionResults)
    if (status === 'failed') told(`${name} > ${fullName}`, failureMessages?.join('\n'));
for (const { fullName } of skipped) console.log(`skipped: ${fullName}`);
for (const { fullName } of silent)
  console.error(`a skipped test says why in its name, "(skipped: the reason)": ${fullName}`);
console.log(
  `tests: ${passed} passed, ${failed + silent.length} failed${skipped.length > silent.length ? `, ${skipped.length - silent.length} skipped with their reason` : ''}`,
);
if (!reports.every(({ success }) => success) || failed > 0 || silent.length > 0 || passed === 0) process.exitCode = 1;
