import type { ToolResultEnvelope } from '../../../src/contract/envelope.ts';
import { untilQuiet } from '../until-quiet.ts';
import { startKeyed } from './client.ts';
import { Process } from './process.ts';
import type { KeyedCall } from './scenario.ts';
import type { KeyWorld, Worker } from './world.ts';

/** Numbers beyond those of the first phase. */
const FIRST_N = 100_001;
/** How a call may end though nothing goes wrong any more: by what happened before. */
const HONEST: ReadonlySet<string> = new Set(['canceled', 'conflict', 'duplicate_in_flight']);

/** The second phase: a new process asks for everything that was asked for, twice. */
export async function convergeKeys(world: KeyWorld): Promise<void> {
  const { findings, scenario, runtime } = world;
  world.calm = true;
  world.down = undefined;
  const keys = [...world.keys];
  const process = new Process(
    { index: world.workers.length, rate: 1, wallAheadMs: 0 },
    runtime.scheduler,
    scenario.seed,
  );
  const worker = world.addWorker(process);
  for (const [index, { calls, tool }] of keys.entries()) {
    const spec = calls[0]?.call;
    if (spec === undefined) continue;
    const again = async (n: number): Promise<ToolResultEnvelope | undefined> =>
      ask(world, worker, { ...withoutDeadline(spec), n, mode: 'enforced' });
    const first = await again(FIRST_N + index * 20);
    if (findings.violations.length > 0) return;
    findings.check(
      first !== undefined,
      'RES-2',
      () => `a call of ${tool.name} has no result once the faults have stopped`,
    );
    if (first === undefined) return;
    const { status, error, fromCache } = first;
    findings.check(
      status === 'success' || fromCache || HONEST.has(error?.code ?? ''),
      'RES-3',
      () => `a call under a healthy store is ${status}: ${error?.message}`,
    );
    if (status !== 'success' || tool.doneTtlMs < 1_000) continue;
    const second = await again(FIRST_N + index * 20 + 2);
    findings.check(
      second?.fromCache === true && JSON.stringify(second.output) === JSON.stringify(first.output),
      'IDEM-4',
      () => `asked again it gives ${JSON.stringify(second)}, first ${JSON.stringify(first.output)}`,
    );
  }
}

const withoutDeadline = ({ deadlineInMs: _, ...call }: KeyedCall): KeyedCall => call;

async function ask(world: KeyWorld, worker: Worker, call: KeyedCall): Promise<ToolResultEnvelope | undefined> {
  const client = startKeyed(world, worker, {
    kind: 'call',
    atMs: 0,
    process: worker.process.index,
    call,
    promise: true,
    leaving: { how: 'stay' },
  });
  await untilQuiet(world);
  return client.result;
}
