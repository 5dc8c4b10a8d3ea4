import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** A child with all three of its streams piped. */
export type PipedChild = ChildProcessByStdio<Writable, Readable, Readable>;

export interface LaunchCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
}

const WINDOWS = process.platform === 'win32';
/** The groups that may still be alive. */
const alive = new Set<number>();

/**
 * Signals a process and all that it started: `npx` runs the server it was asked for as a child of its own, and passes
 * no signal on. Windows has no groups and no signals; `taskkill /T` ends the tree.
 */
export function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (WINDOWS) {
    spawnSync('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true });
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody is left in the group.
  }
}

const killAll = (): void => {
  for (const pid of alive) signalGroup(pid, 'SIGKILL');
  alive.clear();
};

const DEADLY = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal that would end this process without an `exit` event. Where the host listens to it too, the host decides. */
const onDeadly = (signal: NodeJS.Signals): void => {
  if (process.listenerCount(signal) > 1) return;
  killAll();
  unwatch();
  process.kill(process.pid, signal);
};

const watch = (): void => {
  process.on('exit', killAll);
  // First in line: a host's own `once` listener is still counted.
  for (const signal of DEADLY) process.prependListener(signal, onDeadly);
};

const unwatch = (): void => {
  process.off('exit', killAll);
  for (const signal of DEADLY) process.off(signal, onDeadly);
};

/**
 * Starts a command as the head of a process group of its own, which does not outlive this process: it is killed when
 * this one exits or is ended by SIGINT, SIGTERM or SIGHUP. When the head exits, whatever it left behind is killed at
 * once.
 */
export function spawnGroup({ command, args, env, cwd }: LaunchCommand): PipedChild {
  const child: PipedChild = spawn(command, args, {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: !WINDOWS,
    windowsHide: true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  const { pid } = child;
  if (pid === undefined) return child;
  if (alive.size === 0) watch();
  alive.add(pid);
  child.once('exit', () => {
    // Now, and never later: once the group is empty its number may be given to another.
    if (!WINDOWS) signalGroup(pid, 'SIGKILL');
    alive.delete(pid);
    if (alive.size === 0) unwatch();
  });
  return child;
}
