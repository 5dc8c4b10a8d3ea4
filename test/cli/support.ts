import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { until } from '../until.ts';

export { until };

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));
export const DEMO: string = fileURLToPath(new URL('../../src/cli/demo/plan.yaml', import.meta.url));
const MAIN: string = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const EVERYTHING: string = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command, running as a process of its own. */
export interface Running {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly ended: Promise<Ended>;
  /** What it has said on stderr so far. */
  readonly progress: () => string;
}

const { NO_COLOR: _no, FORCE_COLOR: _force, ...inherited } = process.env;

export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd: string = ROOT,
  before: readonly string[] = [],
): Running {
  const child = spawn(process.execPath, [...before, MAIN, ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdout.on('error', () => undefined);
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, ended, progress: () => stderr };
}

export const spillway = (...args: readonly string[]): Promise<Ended> => start(args).ended;

/** A folder for the files of a test, gone at the end of its scope. */
export interface Folder extends Disposable {
  readonly path: string;
  /** Writes a file; gives its path. */
  readonly write: (name: string, content: string | Uint8Array) => string;
}

export function folder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'spillway-cli-'));
  return {
    path,
    write: (name, content) => {
      const file = join(path, name);
      writeFileSync(file, content);
      return file;
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** The `servers:` of a plan with one real server, whose processes carry a mark. */
export const marked = (mark: string): string =>
  `servers:\n  everything: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(EVERYTHING)}, stdio, ${mark}] }\n`;

/** Processes whose command line has the mark, those of tests' own shells excepted. */
export const processesOf = (mark: string): number[] =>
  execFileSync('ps', ['-eo', 'pid=,stat=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.includes(`stdio ${mark}`) && !/^\d+ Z/.test(line))
    .map((line) => Number.parseInt(line, 10));

/** Waits for the end of what was stopped: to be killed takes a moment on a busy machine. */
export const gone = (mark: string): Promise<void> => until(() => processesOf(mark).length === 0, 10_000);

/** What a person takes for a crash. */
export const STACK_TRACE: RegExp = /^\s+at .+:\d+:\d+|node:internal|Uncaught|unhandled/im;
