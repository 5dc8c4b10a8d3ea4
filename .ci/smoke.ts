// The main job, as the README starts it: `npm start` draws the turn, `npm start --silent -- --json` tells it as NDJSON.
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import type { TraceEvent } from '../src/contract/event.ts';

const root = resolve(import.meta.dirname, '..');
/** The bundled plan takes under 15 s; the rest is for starting its servers on a slow machine. */
const LIMIT_MS = 60_000;

const start = (...args: string[]): string => {
  const { status, signal, stdout, stderr } = spawnSync('npm', ['start', ...args], {
    cwd: root,
    encoding: 'utf8',
    input: '',
    timeout: LIMIT_MS,
    maxBuffer: 2 ** 28,
  });
  if (status !== 0 || args.length === 0) console.log(stderr, stdout);
  if (status !== 0) throw new Error(`npm start ${args.join(' ')} ended with ${status ?? signal}, not 0`);
  if (/^\s+at .+:\d+:\d+\)?$/m.test(`${stdout}${stderr}`))
    throw new Error(`npm start ${args.join(' ')} printed a stack trace`);
  return stdout;
};

start();

const lines = start('--silent', '--', '--json')
  .split('\n')
  .filter((line) => line !== '');
const events = lines.map((line) => JSON.parse(line) as TraceEvent);
const last = events.at(-1);
if (last?.source !== 'turn' || last.type !== 'settled')
  throw new Error(`the last line is not the settled turn: ${lines.at(-1)}`);

const failures = (callId: string): number =>
  events.filter((event) => event.source === 'call' && event.callId === callId && event.type === 'attempt_failed')
    .length;
const states = new Set(last.result.nodes.map(({ state }) => state));
const situations = {
  'nodes in parallel and nodes that need others': events.some(
    (event) =>
      event.type === 'turn_started' &&
      event.nodes.filter(({ needs }) => needs.length === 0).length > 1 &&
      event.nodes.some(({ needs }) => needs.length > 0),
  ),
  'a timeout that is retried': events.some(
    (event) =>
      event.type === 'attempt_failed' &&
      event.timeoutMs !== undefined &&
      events.some((other) => other.type === 'attempt_succeeded' && other.callId === event.callId),
  ),
  'two failures, then success': events.some(
    (event) => event.type === 'attempt_succeeded' && failures(event.callId) === 2,
  ),
  'a permanent failure': events.some(
    (event) => event.type === 'attempt_failed' && event.classification === 'permanent',
  ),
  'a node that was skipped': states.has('skipped'),
  'an alternative': events.some((event) => event.type === 'alternative_used'),
  'a deadline that cuts a node off': events.some((event) => event.type === 'deadline' && event.unfinished.length > 0),
  'a harvest': states.has('succeeded'),
};
const missing = Object.entries(situations).filter(([, shown]) => !shown);
if (missing.length > 0)
  throw new Error(`the bundled plan no longer shows: ${missing.map(([name]) => name).join(', ')}`);
console.log(
  `smoke: ${events.length} events; the turn is ${last.result.status}; ${Object.keys(situations).length} situations shown`,
);
