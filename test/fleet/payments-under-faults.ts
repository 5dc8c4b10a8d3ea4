import { firstValueFrom } from 'rxjs';
import { plan, tool, type AnyTool, type TurnResult } from 'spillway';
import type { RunEnd } from '../../src/fleet/dispatcher.ts';
import { virtualRuntime } from '../../src/testing/index.ts';
import { handFleet, sharedStore, type HandFleet, type HandWorker } from './by-hand.ts';
import { hitBy, saying, type Hit } from './hit-questions.ts';

/** A turn of one payment, and of a look that comes after it, which two workers get one after the other. */
export interface Case {
  /** `keyed`: its resource checks the key. `verified`: it can be asked whether it was paid. */
  readonly kind: 'plain' | 'keyed' | 'verified';
  /** How long the tool goes on behind its effect. */
  readonly tookMs: number;
  readonly timeoutMs: number;
  /** The look fails, so that the turn does before its deadline; else it lasts beyond that. */
  readonly fails?: boolean;
}

/** The engine gives the turn to the second worker then, whatever the first one does. */
const MOVES_AT_MS = 4_000;
const LOCK_MS = 3_000;
const LOOK_MS = 200;
const LOOKS_MAX = 400;
/** Nothing may come behind the end either. */
const BEHIND_MS = 8_000;

/** What became of the payment. */
interface Paid {
  readonly result: TurnResult | undefined;
  readonly made: number;
  readonly isThere: boolean;
  /** What each worker asked, in order. */
  readonly asked: Readonly<Record<Hit['worker'], readonly string[]>>;
}

/** The money, and the tools of a worker that move it. */
class Bank {
  made = 0;
  isThere = false;
  readonly #given: Case;

  constructor(given: Case) {
    this.#given = given;
  }

  toolsOf(passed: (ms: number) => Promise<unknown>): AnyTool[] {
    const { kind, tookMs, fails } = this.#given;
    const pay = tool({
      name: 'pay',
      policy: {
        effects: 'mutating',
        retry: { maxAttempts: 1 },
        timeoutMs: 60_000,
        compensate: { enforcesKey: true },
        ...(kind === 'keyed' ? { enforcesKey: true } : {}),
      },
      execute: async () => {
        if (kind !== 'keyed' || !this.isThere) this.made++;
        this.isThere = true;
        await passed(tookMs);
        return 'paid';
      },
      ...(kind === 'verified' ? { verify: async () => ({ done: this.isThere }) } : {}),
      compensate: async () => {
        this.isThere = false;
        await passed(5);
      },
    });
    const look = tool({
      name: 'look',
      policy: { effects: 'read', retry: { maxAttempts: 1 } },
      execute: async () => {
        if (fails === true) throw Object.assign(new Error('nothing to see'), { status: 422 });
        await passed(100_000);
      },
    });
    return [pay, look];
  }
}

/** Gives the turn to a worker, as an engine does: again whenever it comes back, until it dies or the turn settles. */
const servedBy = async ({ runtime, ledger }: HandFleet, worker: HandWorker, untilMs = Infinity): Promise<void> => {
  let ends: RunEnd[] = await worker.give('t');
  for (let look = 0; look < LOOKS_MAX && runtime.now() < untilMs; look++) {
    if (ledger.turns.get('t')?.isSettled === true || worker.machine.isDead) return;
    if (ends.at(-1)?.act === 'again') {
      if (untilMs !== Infinity) return;
      ends = await worker.give('t');
    }
    await runtime.advance(LOOK_MS);
  }
};

/** Has the payment made by two workers whose questions are hit, and by a third where they have not settled it. */
export const paidUnder = async (given: Case, hits: readonly Hit[]): Promise<Paid> => {
  const runtime = virtualRuntime();
  const said = { name: '' };
  const world = handFleet(runtime, saying(sharedStore(runtime), said));
  const bank = new Bank(given);
  const workerOf = (name: string): HandWorker => {
    const passed = (ms: number): Promise<unknown> => firstValueFrom(worker.machine.runtime.after(ms));
    const worker: HandWorker = world.worker(name, bank.toolsOf(passed));
    return worker;
  };
  const [one, two, three] = [workerOf('one'), workerOf('two'), workerOf('three')];
  const hitsOf = (name: Hit['worker']): Hit[] => hits.filter(({ worker }) => worker === name);
  const asked = { one: hitBy(world, one, hitsOf('one'), said), two: hitBy(world, two, hitsOf('two'), said) };
  const nodes = [
    { id: 'pay', tool: 'pay' },
    { id: 'look', tool: 'look', needs: ['pay'] },
  ];
  await world.fleet.submit('t', plan.from(nodes, { onFailure: 'compensate', timeoutMs: given.timeoutMs }));
  const beganMs = runtime.now();
  await servedBy(world, one, beganMs + MOVES_AT_MS);
  if (one.machine.isDead) await runtime.advance(Math.max(0, LOCK_MS - (runtime.now() - beganMs)));
  await servedBy(world, two);
  if (world.result('t') === undefined) {
    await runtime.advance(LOCK_MS);
    await servedBy(world, three);
  }
  await runtime.advance(BEHIND_MS);
  for (const { machine } of [one, two, three]) machine.kill();
  return { result: world.result('t'), made: bank.made, isThere: bank.isThere, asked };
};

/** What is wrong with the end of a turn; nothing where each payment is told as done, as in doubt, or is undone. */
export const problemsOf = ({ result, isThere, made }: Paid): string[] => {
  if (result === undefined) return ['it did not settle'];
  const { compensated = [], stays = [], shared = [] } = result.compensation ?? {};
  const state = result.nodes.find(({ id }) => id === 'pay')?.state;
  const names = [...compensated, ...stays.map(({ id }) => id), ...shared];
  const isWhole = result.status === 'completed' && result.compensation === undefined;
  const isUndone = compensated.includes('pay');
  const isTold = stays.some(({ id }) => id === 'pay' || id === '') || shared.includes('pay');
  return [
    ...(made > 1 ? [`it was paid ${made} times`] : []),
    ...(isThere && !isWhole && !isTold ? ['it was paid, and is neither told nor undone'] : []),
    ...(!isThere && made > 0 && !isUndone && !isTold ? ['it was undone, and is not told'] : []),
    ...(isThere && isUndone ? ['it is told as undone, and was not'] : []),
    ...(new Set(names).size === names.length ? [] : [`one is named twice: ${names.join()}`]),
    ...(isUndone === (state === 'compensated') ? [] : [`it was undone, and its node is ${state}`]),
    ...(stays.some(({ id }) => id === 'pay') === (state === 'compensation_failed') ? [] : [`its node is ${state}`]),
  ];
};
