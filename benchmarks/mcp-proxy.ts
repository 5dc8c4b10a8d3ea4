import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { median, type Question } from './measure.ts';

const ROOT = join(import.meta.dirname, '..');
const SERVER = join(import.meta.dirname, 'mcp-echo.ts');
/** By then what a call runs is compiled, as it is in a proxy that has been there for a while. */
const WARM_UP = 12_000;
const CALLS = 1_500;
const ROUNDS = 5;
const NS_PER_US = 1_000;

interface Asked {
  readonly child: ChildProcess;
  readonly call: () => Promise<void>;
}

const start = async (command: string, args: readonly string[]): Promise<Asked> => {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let answered: (() => void) | undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.includes('"id"')) answered?.();
  });
  let id = 0;
  const ask = (method: string, params: object): Promise<void> =>
    new Promise((resolve) => {
      answered = resolve;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })}\n`);
    });
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'b', version: '1' } });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return { child, call: () => ask('tools/call', { name: 'echo', arguments: { message: 'hello' } }) };
};

/** What all threads of a process have run so far; `undefined` where the system does not tell. */
const cpuUs = (pid: number | undefined): number | undefined => {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const ranNs = threads.map((id) => Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]));
    return ranNs.reduce((sum, ns) => sum + ns, 0) / NS_PER_US;
  } catch {
    return undefined;
  }
};

const timed = async ({ call }: Asked, count: number): Promise<number[]> => {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const startedAtMs = performance.now();
    await call();
    times.push((performance.now() - startedAtMs) * 1_000);
  }
  return times;
};

/** What a call took in each round: the medians direct and through the proxy, and the proxy's processor time for one. */
export interface ProxyRounds {
  readonly directUs: readonly number[];
  readonly proxiedUs: readonly number[];
  /** Empty where the system does not tell. */
  readonly cpuUs: readonly number[];
}

/** @param beside done in each round, for what is to be measured beside it on the same machine */
export async function proxyRounds(
  warmUp: number,
  rounds: number,
  beside: () => Promise<unknown> = () => Promise.resolve(),
): Promise<ProxyRounds> {
  const node = process.execPath;
  const direct = await start(node, [SERVER]);
  const proxied = await start(node, [join(ROOT, 'src/cli/main.ts'), 'mcp', '--', node, SERVER]);
  await timed(direct, warmUp);
  await timed(proxied, warmUp);
  const directUs: number[] = [];
  const proxiedUs: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await beside();
    directUs.push(median(await timed(direct, CALLS)));
    const before = cpuUs(proxied.child.pid);
    proxiedUs.push(median(await timed(proxied, CALLS)));
    const after = cpuUs(proxied.child.pid);
    if (before !== undefined && after !== undefined) cpu.push((after - before) / CALLS);
  }
  for (const { child } of [direct, proxied]) child.kill();
  return { directUs, proxiedUs, cpuUs: cpu };
}

/** What `spillway mcp` adds to a call of a tool, over pipes, in front of a server that answers at once. */
export async function benchmarkMcpProxy(): Promise<Question> {
  const { directUs, proxiedUs, cpuUs: cpu } = await proxyRounds(WARM_UP, ROUNDS);
  const addedUs = median(proxiedUs) - median(directUs);
  const cpuPerCall = median(cpu);
  return {
    question: 'What does spillway mcp add to a call of a tool?',
    figures: [
      { name: 'a call over a pipe, direct', usPerUnit: median(directUs), runs: ROUNDS },
      { name: 'through the proxy', usPerUnit: median(proxiedUs), runs: ROUNDS },
      ...(cpu.length === 0
        ? []
        : [{ name: 'processor time of the proxy for it', usPerUnit: cpuPerCall, runs: ROUNDS }]),
    ],
    ratios: {},
    targets: [
      { name: '`tools/call` through `spillway mcp`, added at the median', value: addedUs, limit: 1_000, unit: 'us' },
      ...(cpu.length === 0
        ? []
        : [{ name: '`tools/call` through `spillway mcp`, processor time', value: cpuPerCall, limit: 200, unit: 'us' }]),
    ],
  };
}
