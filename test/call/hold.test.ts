import { NEVER, Subject, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ToolResultEnvelope } from '../../src/contract/envelope.ts';
import type { ToolPolicy } from '../../src/contract/policy.ts';
import type { ToolContext } from '../../src/contract/tool.ts';
import { createSpillway } from '../../src/spillway.ts';
import { counting, handClock } from '../support.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One call of a tool that never answers, on a clock that is moved by hand. */
const calling = (policy: ToolPolicy, execute: (context: ToolContext) => Observable<unknown>) => {
  const clock = handClock();
  const runtime = counting(clock.runtime);
  const tool = {
    name: 'book',
    policy: { effects: 'mutating' as const, ...policy },
    execute: (_: unknown, context: ToolContext) => execute(context),
  };
  const spillway = createSpillway({ tools: [tool], runtime });
  let result: ToolResultEnvelope | undefined;
  void spillway.execute({ toolName: 'book' }).then((ended) => (result = ended));
  const pass = async (ms: number): Promise<ToolResultEnvelope | undefined> => {
    clock.pass(ms);
    await settled();
    return result;
  };
  return { pass, runtime };
};

describe('R-4.7 the time in which a person is waited for', () => {
  it('R-4.7 does not count against timeoutMs: what was left before is left after it', async () => {
    const waiting$ = new Subject<boolean>();
    const { pass, runtime } = calling({ timeoutMs: 1_000 }, (context) => {
      context.holdWhile?.(waiting$);
      return NEVER;
    });
    await settled();
    expect(await pass(600)).toBeUndefined();
    waiting$.next(true);
    expect(await pass(3_600_000)).toBeUndefined();
    waiting$.next(false);
    expect(await pass(390)).toBeUndefined();
    expect((await pass(20))?.error?.code).toBe('timeout');
    expect(runtime.timers).toBe(0);
  });

  it('R-4.7 nor against idleTimeoutMs, which starts anew after it', async () => {
    const waiting$ = new Subject<boolean>();
    const { pass } = calling({ timeoutMs: 100_000, idleTimeoutMs: 500 }, (context) => {
      context.holdWhile?.(waiting$);
      return NEVER;
    });
    await settled();
    expect(await pass(400)).toBeUndefined();
    waiting$.next(true);
    expect(await pass(50_000)).toBeUndefined();
    waiting$.next(false);
    expect(await pass(490)).toBeUndefined();
    expect((await pass(20))?.error?.code).toBe('timeout');
  });

  it('R-4.7 a tool that tells of nobody has its hard limit', async () => {
    const { pass } = calling({ timeoutMs: 1_000 }, () => NEVER);
    await settled();
    expect(await pass(990)).toBeUndefined();
    expect((await pass(20))?.error?.code).toBe('timeout');
  });
});
