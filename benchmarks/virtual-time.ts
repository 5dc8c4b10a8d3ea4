import { VirtualTimeScheduler, type SchedulerLike } from 'rxjs';
import { seededRandom } from '../src/policy/random.ts';
import { VirtualScheduler } from '../src/testing/virtual-scheduler.ts';

/** Events a second with many timers pending: each that fires sets the next one. Ours beside RxJS's own. */
const PENDING = [100, 10_000, 100_000];
const BUDGET_MS = 1_500;
const LONGEST_MS = 60_000;

/** Fills the scheduler, then counts; `go` runs events until `over` says so. */
const measure = (
  scheduler: SchedulerLike,
  pending: number,
  filled: () => void,
  go: (over: () => boolean) => void,
): number => {
  const random = seededRandom(1);
  let events = 0;
  const fire = (): void => {
    events++;
    scheduler.schedule(fire, random() * LONGEST_MS);
  };
  for (let i = 0; i < pending; i++) scheduler.schedule(fire, (i / pending) * LONGEST_MS);
  filled();
  const startedMs = performance.now();
  go(() => performance.now() - startedMs > BUDGET_MS);
  return events / ((performance.now() - startedMs) / 1000);
};

const ours = (pending: number): number => {
  const scheduler = new VirtualScheduler();
  return measure(
    scheduler,
    pending,
    () => undefined,
    (over) => {
      while (!over()) for (let i = 0; i < 100; i++) scheduler.step();
    },
  );
};

const theirs = (pending: number): number => {
  const scheduler = new VirtualTimeScheduler(undefined, Infinity);
  // It sorts with every timer that is set. What fills it comes in order, so that sorting may wait: filling it would
  // take minutes.
  const { actions } = scheduler;
  Object.defineProperty(actions, 'sort', { value: () => actions, configurable: true });
  return measure(
    scheduler,
    pending,
    () => Reflect.deleteProperty(actions, 'sort'),
    (over) => {
      // Its loop ends at a frame; one after the other, so that the time can be looked at between events.
      while (!over()) {
        scheduler.maxFrames = actions[0]?.delay ?? 0;
        scheduler.flush();
      }
    },
  );
};

for (const pending of PENDING) {
  const [mine, rxjs] = [ours(pending), theirs(pending)];
  console.log(
    `${String(pending).padStart(7)} pending: spillway ${Math.round(mine).toLocaleString('en')} events/s, RxJS ${Math.round(rxjs).toLocaleString('en')} events/s (x ${Math.round(mine / rxjs)})`,
  );
}
