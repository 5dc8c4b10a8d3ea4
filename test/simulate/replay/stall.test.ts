import { setTimeout as sleep } from 'node:timers/promises';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { ReplayRefusal, replayTrace } from 'spillway/simulate';

/** The process stands still. */
const block = (ms: number): void => {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
};

/** Longer than what clocks may differ by. */
const STILL_MS = 400;

/** A turn of four nodes and three calls beside it, of a tool that does this in its run of that number. */
const recorded = async (does: (run: number) => Promise<void> | void, timeoutMs = 30_000): Promise<TraceEvent[]> => {
  let runs = 0;
  const slow = tool({
    name: 'slow',
    policy: { effects: 'read', timeoutMs, retry: { initialDelayMs: 20, maxAttempts: 3 } },
    execute: async () => {
      await does(++runs);
      await sleep(5);
      return 'found';
    },
  });
  const layer = createSpillway({ tools: [slow] });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const nodes = ['a', 'b', 'c'].map((id) => ({ id, tool: 'slow' }));
  const turn = lastValueFrom(layer.turn(plan.from([...nodes, { id: 'd', tool: 'slow', needs: ['a', 'c'] }])));
  await Promise.all([turn, ...[1, 2, 3].map(() => layer.execute({ toolName: 'slow', input: {} }))]);
  await layer.close();
  return events;
};

/** Whether a recording is followed: one of several, for a busy machine may stand still where nothing tells of it. */
const isFollowed = async (record: () => Promise<TraceEvent[]>): Promise<boolean> => {
  for (let tried = 0; tried < 5; tried++) {
    const events = await record();
    try {
      return replayTrace(events).identity.events === events.length;
    } catch (error) {
      if (!(error instanceof ReplayRefusal)) throw error;
    }
  }
  return false;
};

const refusalOf = (events: readonly TraceEvent[]): ReplayRefusal => {
  try {
    replayTrace(events);
  } catch (error) {
    if (error instanceof ReplayRefusal) return error;
    throw error;
  }
  throw new Error('it was replayed');
};

const STOOD_STILL = new RegExp(
  '; its process stood still for (\\d+) ms before event (\\d+) \\(its event loop was blocked, ' +
    'or its machine slept\\), .* or else it was edited, or',
);

describe('RPL-1 a process that stood still for longer than clocks may differ', () => {
  it('is followed where what came late says so: time limits that were due meanwhile', async () => {
    const record = async (): Promise<TraceEvent[]> => {
      const events = await recorded(async (run) => {
        if (run !== 2) return;
        setTimeout(() => block(STILL_MS), 2);
        await sleep(1_000);
      }, 50);
      const late = events.find((event) => event.type === 'attempt_failed');
      expect(late?.type === 'attempt_failed' && late.durationMs).toBeGreaterThan(STILL_MS - 50);
      return events;
    };
    expect(await isFollowed(record)).toBe(true);
  });

  it.each([
    [
      'answers',
      (run: number): void => {
        if (run === 2) setTimeout(() => block(STILL_MS), 2);
      },
    ],
    [
      'next attempts',
      (run: number): void => {
        if (run > 2) return;
        setTimeout(() => block(STILL_MS), 10);
        throw Object.assign(new Error('unavailable'), { status: 503 });
      },
    ],
  ])('is followed while calls wait for their %s', async (_, does) => {
    expect(await isFollowed(() => recorded(does))).toBe(true);
  });

  it('is named as the first cause where it is not followed, and an edit as the other', async () => {
    const events = await recorded((run) => {
      if (run <= 2) block(STILL_MS);
    });
    const { code, message, seq } = refusalOf(events);
    expect(code).toBe('different');
    const [, ms, at] = STOOD_STILL.exec(message) ?? [];
    expect(Number(at)).toBe(seq);
    expect(Number(ms)).toBeGreaterThan(STILL_MS - 1);
    expect(events[Number(at)]?.type).toBe('node_started');
  });

  it('is not named where no time says so', async () => {
    const events = await recorded(() => undefined);
    const index = events.findIndex(({ type }) => type === 'settled');
    const { atMs } = events[index] as TraceEvent;
    // One event alone is later than those after it: a clock that was set, or an edit.
    const edited = events.with(index, { ...(events[index] as TraceEvent), atMs: atMs + 2 * STILL_MS });
    expect(refusalOf(edited).message).not.toContain('stood still');
    const decided = events.findIndex((event) => event.type === 'settled' && event.source === 'call');
    const other = JSON.parse(JSON.stringify(events[decided]).replace('"success"', '"error"')) as TraceEvent;
    expect(refusalOf(events.with(decided, other)).message).not.toContain('stood still');
  });
});
