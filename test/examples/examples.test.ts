import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { EXAMPLE_TIMEOUT_MS, linesOf } from './started.ts';

const HARNESS = ['run.ts', 'sources.ts', 'started.ts'];
const files = readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith('.ts') && !/\.(?:test|d)\.ts$/.test(name) && !HARNESS.includes(name),
);
const page = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const listed = [...page.matchAll(/^\| `([\w-]+)`/gm)].map(([, name = '']) => name);
const UNPAID =
  'The connection to the tool failed. The tool may have run and taken effect. ' +
  'Check first whether it took effect. Only if it did not: you can try again.';

describe('examples', { timeout: EXAMPLE_TIMEOUT_MS }, () => {
  it('each has a line in the README, and each is run by a test', () => {
    const names = listed.map((name) => `${name}.ts`);
    expect(names.toSorted()).toEqual(files.toSorted());
    const tests = readdirSync(import.meta.dirname)
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'))
      .join('');
    expect(listed.filter((name) => !tests.includes(`linesOf('${name}'`))).toEqual([]);
  });

  it('each is short, and takes nothing of this repository but a scripted model', () => {
    const long = files.filter((name) => readFileSync(join(import.meta.dirname, name), 'utf8').split('\n').length > 90);
    const inward = files.flatMap((name) =>
      [...readFileSync(join(import.meta.dirname, name), 'utf8').matchAll(/from '(\.[^']+)'/g)].flatMap(
        ([, from = '']) => (from.startsWith('./scripted/') ? [] : [`${name}: ${from}`]),
      ),
    );
    expect([...long, ...inward]).toEqual([]);
  });

  it('npm run example without a name, or with one that is none, names them all', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'run.ts'), 'nothing'], {
      encoding: 'utf8',
    });
    expect([status, stderr.trim()]).toEqual([
      2,
      `usage: npm run example NAME, where NAME is one of: ${listed.join(', ')}`,
    ]);
    expect(execFileSync('npm', ['run', '--silent', 'example', 'policy'], { encoding: 'utf8' })).toContain(
      'holds: an answer passes as it comes',
    );
  });

  it('explore: a payment that would be made twice is found, and is not once it is mended', async () => {
    const lines = await linesOf('explore');
    expect(lines.slice(0, 2)).toEqual([
      '340 schedules, 37 findings',
      'attempt 1 of pay breaks off after its effect: the effect of pay under ' +
        '"payment 00000000-0000-7000-8000-000000000005" was done twice',
    ]);
    expect(lines.find((line) => line.startsWith('pay '))).toMatch(/^pay +\^✗.*\?.*\^●  succeeded, 2 attempts$/);
    expect(lines.at(-1)).toBe('319 schedules, 0 findings');
  });

  it('trip: a lost answer is looked up, and what was booked is undone', async () => {
    expect(await linesOf('trip')).toEqual([
      'booked: book_flight in Bergen',
      'booked: book_hotel in Bergen',
      'asked: was there a book_hotel?',
      'verified: book_hotel done',
      'undone: book_hotel in Bergen, since the turn ended escalated',
      'undone: book_flight in Bergen, since the turn ended escalated',
      'Completed nothing, but pay failed and book flight and book hotel were undone. Stays: 0',
    ]);
  });

  it('approvals: a person approves from anywhere, also after a restart, and the budget ends it', async () => {
    expect(await linesOf('approvals')).toEqual([
      'refunded: 5 dollars for order A1',
      'asked: refund {"order":"A2","usd":40}',
      'refunded: 40 dollars for order A2',
      'asked: refund {"order":"A3","usd":900}',
      'not refunded: Grace did not approve the call: That is more than the order',
      'not refunded: The layer was closed',
      'asked: refund {"order":"A4","usd":45}',
      'refunded: 45 dollars for order A4',
      'refunded: 9 dollars for order A5',
      'refunded: 9 dollars for order A6',
      "not refunded: The tenant's budget is used up: 0 of 100 US dollars left",
    ]);
  });

  it('pipeline: a new question replaces the one before it, and leaves nothing running', async () => {
    const lines = await linesOf('pipeline');
    expect(lines.slice(0, 2).toSorted()).toEqual([
      'ann: Bergen: a weekend, made of 4 notes',
      'bob: Turku: a weekend, made of 4 notes',
    ]);
    expect(lines.slice(2)).toEqual(['searches at a time: 2, stopped: 2, still running: 0']);
  });

  it('policy: its laws hold', async () => {
    expect(await linesOf('policy')).toEqual([
      'holds: an answer passes as it comes',
      'holds: a service that hangs is asked three times, and ends as a timeout',
      'holds: after four failures nobody is sent there for a minute',
    ]);
  });

  it('mcp: two servers answer one agent, and a wrong input reaches none', async () => {
    expect(await linesOf('mcp')).toEqual([
      'files.search_files: {"content":"./mcp.ts"}',
      'everything.get-sum: The sum of 19 and 23 is 42.',
      expect.stringMatching(/^everything\.get-sum: The input is malformed: /) as unknown,
      'One file, and 42.',
    ]);
  });

  it('rest: busy once and asked again; an input that leaves its place is refused', async () => {
    expect(await linesOf('rest')).toEqual([
      "success { sky: 'clear', path: '/cities/Oslo/forecast?days=3' } in 2 attempts",
      expect.stringMatching(
        /^error invalid_parameters .*: city: must not be \. or \.\. .*: correct it first\.$/,
      ) as unknown,
    ]);
  });

  it('ai-sdk: what reads is tried again, what pays is not', async () => {
    expect(await linesOf('ai-sdk')).toEqual([
      'weather: clear in Oslo',
      `pay failed: ${UNPAID}`,
      'Clear. I could not see whether the bill was paid. (the weather was asked 2 times)',
    ]);
  });

  it('langchain: what reads is tried again, what pays is not', { timeout: SIDE_INSTALL_TIMEOUT_MS }, async () => {
    expect(await linesOf('langchain')).toEqual([
      'weather success: clear in Oslo',
      `pay error: ${UNPAID}`,
      'Clear. I could not see whether the bill was paid. (the weather was asked 2 times)',
    ]);
  });

  it('dashboard: the table counts calls, attempts and failures', async () => {
    const cells = (await linesOf('dashboard')).flatMap((line) =>
      line.startsWith('│')
        ? [
            line
              .split('│')
              .map((cell) => cell.trim())
              .filter((cell) => cell !== ''),
          ]
        : [],
    );
    expect(cells).toEqual([
      ['(index)', 'settled', 'attempt_started', 'attempt_failed', 'attempt_canceled'],
      ['flaky', '2', '6', '4'],
      ['steady', '1', '1'],
    ]);
  });
});
