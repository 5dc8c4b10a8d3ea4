import { lastValueFrom } from 'rxjs';
import { fromOutput } from '../operators/work/output.ts';
import type { VirtualRuntime } from '../testing/virtual-runtime.ts';
import type { Life } from './life.ts';
import type { Fault } from './schedule.ts';
import { silence } from './world.ts';

/** An attempt that something strikes. */
export interface Struck {
  readonly fault: Fault;
  /** What the tool does. With `asServer` it goes on though its process is dead. */
  readonly work: (asServer: boolean) => unknown;
  readonly signal: AbortSignal;
  readonly life: Life;
  readonly runtime: VirtualRuntime;
  /** How long after its caller has gone a request can still act. */
  readonly lateMs: number;
}

const lost = (): Error => Object.assign(new Error('Explored fault: the connection broke off'), { code: 'ECONNRESET' });
const refused = (): Error => Object.assign(new Error('Explored fault: refused'), { status: 422 });

/** Emits once the attempt was given up, or its process has died. */
const gone = ({ signal, life }: Struck): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
    void life.died.then(resolve);
  });

const aborted = (struck: Struck): Promise<never> =>
  gone(struck).then(() => {
    throw lost();
  });

const later = ({ runtime, lateMs }: Struck): Promise<void> =>
  lateMs === 0
    ? Promise.resolve()
    : new Promise((resolve) => {
        runtime.after(lateMs).subscribe(() => resolve());
      });

/** What the tool gives in the end. Its process may be dead by then. */
const done = async ({ work }: Struck, asServer: boolean = false): Promise<unknown> =>
  lastValueFrom(fromOutput(work(asServer)), { defaultValue: undefined });

/** Its caller has gone: nobody hears how it ends. */
const actsUnheard = async (struck: Struck): Promise<void> => {
  await later(struck);
  try {
    await done(struck, true);
  } catch {
    // It did not act.
  }
};

const actsLate = async (struck: Struck): Promise<never> => {
  await gone(struck);
  const acted = actsUnheard(struck);
  // One that acts at that very instant has acted when the attempt stops.
  if (struck.lateMs === 0) await acted;
  throw lost();
};

/** An attempt as a fault has it: gives what the layer is given in place of the tool's own output. */
export const strike = async (struck: Struck): Promise<unknown> => {
  const { fault, life } = struck;
  switch (fault) {
    case 'refused':
      throw refused();
    case 'fails_before':
      throw lost();
    case 'hangs':
      return aborted(struck);
    case 'fails_after':
      await done(struck);
      throw lost();
    case 'loses_answer':
      await done(struck);
      return aborted(struck);
    case 'answers_late': {
      const output = await done(struck);
      await gone(struck);
      await later(struck);
      return life.isAlive() ? output : silence();
    }
    case 'acts_late':
      return actsLate(struck);
    case 'dies_before':
      life.end();
      return silence();
    case 'dies_after':
      await done(struck);
      life.end();
      return silence();
  }
};
