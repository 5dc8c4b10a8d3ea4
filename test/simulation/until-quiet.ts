import type { VirtualScheduler } from '../../src/testing/virtual-scheduler.ts';
import type { Findings } from './findings.ts';

/** What is run, and looked at between its events. */
export interface Watched {
  readonly runtime: { readonly scheduler: VirtualScheduler };
  readonly findings: Findings;
  /** Work that was given up is over in the same instant. */
  checkGivenUp(): void;
  /** Virtual time is about to go on. */
  leaving(): void;
}

/** More events than any run needs: one that gets here will never be quiet. */
const STEPS_MAX = 50_000;

/** Ends when every chain of promises has run out. */
const drained = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });

/** Runs until no timer waits, with every check between the events. */
export async function untilQuiet(world: Watched): Promise<void> {
  const { scheduler } = world.runtime;
  let overdue = 0;
  for (let steps = 0; world.findings.violations.length === 0; steps++) {
    await drained();
    world.checkGivenUp();
    const nextMs = scheduler.nextMs();
    if (nextMs > scheduler.now()) world.leaving();
    overdue = nextMs < scheduler.now() ? overdue + 1 : 0;
    if (overdue > 1) world.findings.saw('stall past several timers');
    if (!scheduler.step()) return;
    world.checkGivenUp();
    world.findings.check(steps < STEPS_MAX, 'RSC-1', () => `it is not quiet after ${STEPS_MAX} events`);
  }
}
