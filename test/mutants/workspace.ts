import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LEFT_OUT, SLOW } from './areas.ts';

/** How a run of tests ended: what they said, unless they were cut off. */
export interface StageEnd {
  readonly green: boolean;
  /** The first that failed. */
  readonly by: string;
}

const NOT_COPIED = new Set(['node_modules', '.git', 'dist', 'coverage']);
/** The tests beside take so many times as long as the quick ones. */
const FAR_TIMES = 6;
/** What a run prints last is kept. */
const OUTPUT_MAX = 2_000_000;

/** A copy of the tree, in which one line at a time is made wrong. */
export class Workspace {
  readonly #folder: string;
  readonly #timeoutMs: number;

  private constructor(folder: string, timeoutMs: number) {
    this.#folder = folder;
    this.#timeoutMs = timeoutMs;
  }

  static async create(root: string, timeoutMs: number): Promise<Workspace> {
    const folder = await mkdtemp(join(tmpdir(), 'spillway-mutants-'));
    await cp(root, folder, {
      recursive: true,
      filter: (path) => !NOT_COPIED.has(path.slice(root.length).split('/').at(-1) ?? ''),
    });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    return new Workspace(folder, timeoutMs);
  }

  async write(file: string, text: string): Promise<void> {
    await writeFile(join(this.#folder, 'src', file), text);
  }

  /** @param quick without the slow ones, and all in one worker */
  async test(filters: readonly string[], quick: boolean): Promise<StageEnd> {
    const vitest = join('node_modules', 'vitest', 'vitest.mjs');
    const excluded = [
      ...LEFT_OUT,
      ...(quick ? SLOW.filter((path) => !filters.some((filter) => path.startsWith(`${filter}.`))) : []),
    ].flatMap((path) => ['--exclude', path]);
    const args = [
      vitest,
      'run',
      '--config',
      'test/vitest.config.ts',
      '--bail',
      '1',
      '--maxWorkers',
      '1',
      ...(quick ? ['--no-isolate'] : []),
      ...excluded,
      ...filters,
    ];
    const { code, output } = await this.#run(args, quick ? this.#timeoutMs : FAR_TIMES * this.#timeoutMs);
    if (/No test files found/.test(output)) throw new RangeError(`no tests are under ${filters.join(', ')}`);
    return {
      green: code === 0,
      by:
        code === undefined
          ? 'a test that never ends'
          : (/FAIL +(?:\|\w+\| +)?(test\/.+)/.exec(output)?.[1] ?? 'a test run that broke off'),
    };
  }

  async simulate(seeds: number): Promise<StageEnd> {
    const { code, output } = await this.#run(
      ['test/simulation/run.ts', '--seeds', String(seeds), '--threads', '1', '--json'],
      this.#timeoutMs,
    );
    const seed = /"seed": ?(\d+)/.exec(output)?.[1] ?? 'none';
    const invariant = /"invariant": ?"([\w-]+)"/.exec(output)?.[1] ?? 'no invariant';
    return {
      green: code === 0,
      by: code === undefined ? 'a simulation that never ends' : `the simulation: ${invariant}, seed ${seed}`,
    };
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Ends with the exit code, or without one when the time was over. */
  #run(
    args: readonly string[],
    timeoutMs: number,
  ): Promise<{ readonly code: number | undefined; readonly output: string }> {
    return new Promise((resolve, reject) => {
      // A group of its own, so that the servers and workers that it started end with it.
      const child = spawn(process.execPath, args, {
        cwd: this.#folder,
        detached: true,
        env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
      });
      let output = '';
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      }, timeoutMs);
      const keep = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-OUTPUT_MAX));
      child.stdout.on('data', keep);
      child.stderr.on('data', keep);
      child.once('error', reject);
      child.once('close', (code) => {
        clearTimeout(timer);
        resolve({ code: late ? undefined : (code ?? 1), output });
      });
    });
  }
}
