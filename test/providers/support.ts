import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { firstValueFrom, isObservable } from 'rxjs';
import { isToolExecutionError, type ToolExecutionError } from '../../src/contract/tool-error.ts';
import type { Progress, Tool, ToolContext } from '../../src/contract/tool.ts';
import type { McpProvider } from '../../src/providers/mcp.ts';
import { mcpStdioProvider, type McpStdioOptions, type McpStdioProvider } from '../../src/providers/mcp-stdio.ts';

export { until } from '../until.ts';

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));
export const EVERYTHING: string = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);
export const FILESYSTEM: string = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'),
);

/** A real server over stdio. */
export const everything = (options: Partial<McpStdioOptions> = {}): Promise<McpStdioProvider> =>
  mcpStdioProvider({ name: 'everything', command: process.execPath, args: [EVERYTHING, 'stdio'], ...options });

export interface TestContext extends ToolContext {
  readonly reports: Progress[];
}

export function context(
  signal: AbortSignal = new AbortController().signal,
  more: Partial<ToolContext> = {},
): TestContext {
  const reports: Progress[] = [];
  return { signal, attempt: 1, callKey: 'key', ...more, reports, progress: (report) => reports.push(report) };
}

export function toolOf({ tools }: McpProvider, name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined)
    throw new Error(`no tool ${name} among ${tools.map((candidate) => candidate.name).join(', ')}`);
  return tool;
}

/** One execution of a tool, as a promise. */
export async function run(
  provider: McpProvider,
  name: string,
  input: unknown,
  ctx: ToolContext = context(),
): Promise<unknown> {
  const output = toolOf(provider, name).execute(input, ctx);
  return isObservable(output) ? firstValueFrom(output) : output;
}

/** The error that work fails with. */
export async function failure(work: Promise<unknown>): Promise<ToolExecutionError> {
  try {
    await work;
  } catch (error) {
    if (isToolExecutionError(error)) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

/** Ends a process that the test started. @throws where its id was not learnt: 0 would be the tests' own group */
export const kill = (pid: number | null | undefined): void => {
  if (typeof pid !== 'number' || !(pid > 2)) throw new RangeError(`${pid} is not the id of a process of ours`);
  process.kill(pid, 'SIGKILL');
};

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Processes of a group. */
export const groupOf = (pgid: number): number[] =>
  execFileSync('ps', ['-eo', 'pid=,pgid=,stat='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, stat]) => group === String(pgid) && stat?.startsWith('Z') !== true)
    .map(([pid]) => Number(pid));
