// Was: a host's error handler had a safety-critical tool run again after an uncertain timeout, and went round a
// `blocked` by an alternative. Now: it can refuse more than the rules, never less; its decision is replaced, and the
// trace names the rule.
import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  ToolExecutionError,
  createSpillway,
  tool,
  type ErrorHandler,
  type RecoveryDecision,
  type SpillwayOptions,
  type ToolEvent,
  type ToolPolicy,
} from 'spillway';
import { virtualRuntime } from 'spillway/testing';

const again: RecoveryDecision = { strategy: 'retry', code: 'transient', reason: 'the host wants it', delayMs: 1 };
const round: RecoveryDecision = {
  strategy: 'alternative',
  toolName: 'other',
  code: 'guidance',
  reason: 'the host wants it',
};

interface Seen {
  readonly ran: string[];
  readonly decisions: ReadonlyArray<Extract<ToolEvent, { type: 'decision' }>>;
  readonly result: Extract<ToolEvent, { type: 'settled' }>['result'] | undefined;
}

/** Calls `pay`, which does what `execute` does, with an alternative beside it. */
const call = async (
  execute: (attempt: number) => unknown,
  policy: ToolPolicy,
  errorHandler: ErrorHandler,
  options: SpillwayOptions = {},
): Promise<Seen> => {
  const runtime = virtualRuntime();
  const ran: string[] = [];
  const retry = { maxAttempts: 4, initialDelayMs: 1, maxTotalTimeMs: 10_000 };
  const pay = tool({
    name: 'pay',
    policy: { retry, timeoutMs: 20, alternatives: ['other'], ...policy },
    execute: (_: unknown, { attempt }) => {
      ran.push('pay');
      return execute(attempt);
    },
  });
  const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => ran.push('other') });
  const events: ToolEvent[] = [];
  createSpillway({ tools: [pay, other], errorHandler, runtime, ...options })
    .call({ toolName: 'pay' })
    .subscribe((event) => events.push(event));
  await runtime.advance(30_000);
  const last = events.at(-1);
  return {
    ran,
    decisions: events.filter((event) => event.type === 'decision'),
    result: last?.type === 'settled' ? last.result : undefined,
  };
};

const hangs = (): Promise<never> => new Promise(() => undefined);
const throws = (error: unknown) => (): never => {
  throw error;
};
const mutating = { effects: 'mutating' } as const;

describe('R-2.5 a host’s handler can refuse more and never less', () => {
  it.each<readonly [string, () => unknown, ToolPolicy, string, string]>([
    [
      'an uncertain timeout of a safety-critical tool',
      hangs,
      { ...mutating, safetyCritical: true },
      'uncertain_mutation',
      'safetyCritical',
    ],
    [
      'an uncertain timeout of a safety-critical tool whose resource checks keys',
      hangs,
      { ...mutating, safetyCritical: true, enforcesKey: true },
      'uncertain_mutation',
      'safetyCritical',
    ],
    ['an uncertain timeout of a mutating tool', hangs, mutating, 'uncertain_mutation', 'R-2.5'],
    ['a bare throw of a mutating tool', throws(new Error('it broke')), mutating, 'uncertain_mutation', 'R-2.5'],
    [
      'a permanent failure',
      throws(Object.assign(new Error('no'), { status: 422 })),
      { ...mutating, alternatives: [] },
      'permanent',
      'R-2.5',
    ],
    [
      'a server’s word not to ask again',
      throws(new ToolExecutionError('execution_error', 'no', { status: 503, retryAfterMs: -1 })),
      { effects: 'read', alternatives: [] },
      'no_retry_hint',
      'R-2.4',
    ],
  ])('R-2.5 it cannot order a retry after %s', async (_what, execute, policy, code, rule) => {
    const { ran, decisions, result } = await call(execute, policy, () => again);
    expect(ran).toEqual(['pay']);
    expect(decisions).toHaveLength(1);
    expect(decisions[0]).toMatchObject({ code });
    expect(decisions[0]?.reason).toMatch(new RegExp(`the error handler was overruled by ${rule}\\b.*${code}`));
    expect(result?.status).not.toBe('success');
  });

  it('R-2.3 a retry after the total time is refused at once, and nothing is waited for', async () => {
    const policy = { effects: 'read', timeoutMs: 60, alternatives: [] } as const;
    const retry = { maxAttempts: 3, initialDelayMs: 50, maxTotalTimeMs: 100 };
    const { ran, decisions } = await call(hangs, { ...policy, retry }, () => ({ ...again, delayMs: 50 }));
    expect(ran).toEqual(['pay']);
    expect(decisions).toMatchObject([{ code: 'time_exhausted' }]);
  });

  it('R-2.5 one that answers later cannot either', async () => {
    const { ran, decisions } = await call(hangs, { ...mutating, safetyCritical: true }, () => of(again));
    expect(ran).toEqual(['pay']);
    expect(decisions[0]?.reason).toContain('overruled by safetyCritical');
  });

  it('R-2.5 an open breaker is not gone round by a retry', async () => {
    const failing = throws(Object.assign(new Error('busy'), { status: 503 }));
    const { ran, decisions } = await call(
      failing,
      { effects: 'read', breaker: { failureThreshold: 2 }, alternatives: [] },
      () => again,
    );
    expect(ran).toEqual(['pay', 'pay']);
    expect(decisions.at(-1)).toMatchObject({ code: 'circuit_open' });
    expect(decisions.at(-1)?.reason).toContain('overruled by R-2.5');
  });

  it('R-2.4 a retry sooner than the server asked for gives way to one that waits', async () => {
    const failing = throws(Object.assign(new Error('busy'), { status: 503, retryAfterMs: 500 }));
    const { decisions } = await call(
      failing,
      { effects: 'read', retry: { maxAttempts: 2, initialDelayMs: 1, maxTotalTimeMs: 10_000 }, alternatives: [] },
      () => again,
    );
    expect(decisions[0]).toMatchObject({ strategy: 'retry', delayMs: 500 });
    expect(decisions[0]?.reason).toContain('overruled by R-2.4');
  });

  it('R-2.5 what the rules allow it may still order, and refuse', async () => {
    const flaky = (attempt: number): string => {
      if (attempt === 1) throw Object.assign(new Error('busy'), { status: 503 });
      return 'paid';
    };
    expect(await call(flaky, mutating, () => again)).toMatchObject({
      ran: ['pay', 'pay'],
      result: { status: 'success' },
    });
    expect(await call(flaky, mutating, () => round)).toMatchObject({
      ran: ['pay', 'other'],
      result: { status: 'success', toolName: 'other' },
    });
    expect(await call(flaky, mutating, () => ({ ...again, strategy: 'fail' }))).toMatchObject({
      ran: ['pay'],
      decisions: [{ strategy: 'fail', reason: 'the host wants it' }],
    });
    expect(await call(hangs, { ...mutating, enforcesKey: true, alternatives: [] }, () => again)).toMatchObject({
      ran: ['pay', 'pay', 'pay', 'pay'],
    });
  });
});

describe('R-2.5 a handler that writes into what it is shown', () => {
  const writes = (failure: object, name: string, value: unknown): void => void Reflect.set(failure, name, value);

  it.each<readonly [string, ErrorHandler]>([
    ['at once', (failure) => (writes(failure.error, 'uncertain', false), writes(failure, 'effects', 'read'), again)],
    [
      'later',
      async (failure) => (writes(failure.error, 'uncertain', false), writes(failure, 'effects', 'read'), again),
    ],
    [
      'with an alternative of its own',
      (failure) => (
        writes(failure.error, 'uncertain', false),
        writes(failure.alternatives, '0', 'pay'),
        { ...round, toolName: 'pay' }
      ),
    ],
    [
      'by defining it anew',
      (failure) => (Reflect.defineProperty(failure.error, 'uncertain', { value: false, writable: true }), round),
    ],
  ])('R-2.5 changes nothing that the rules are asked about, %s', async (_what, handler) => {
    expect(await call(throws(new Error('no receipt')), mutating, handler)).toMatchObject({
      ran: ['pay'],
      result: { error: { uncertain: true } },
    });
  });
});

describe('R-6.1 an alternative gets round no no, and does nothing twice', () => {
  it.each<readonly [string, () => unknown, string]>([
    ['not_permitted', throws(new ToolExecutionError('not_permitted', 'not for you')), 'not_permitted'],
    ['conflict', throws(new ToolExecutionError('conflict', 'another input')), 'conflict'],
    ['blocked', throws(new ToolExecutionError('blocked', 'no')), 'blocked'],
    ['what may have been done', throws(new Error('no receipt')), 'uncertain_mutation'],
    ['what hung', hangs, 'uncertain_mutation'],
  ])('R-6.1 a handler cannot go round %s', async (_what, execute, word) => {
    const { ran, decisions, result } = await call(execute, mutating, () => round);
    expect(ran).toEqual(['pay']);
    expect(decisions[0]).not.toMatchObject({ strategy: 'alternative' });
    expect(decisions[0]?.reason).toMatch(new RegExp(`overruled by R-6\\.1\\b.*${word}`));
    expect(result?.toolName).toBe('pay');
  });

  it('R-6.1 a hook’s blocked is not gone round', async () => {
    const { ran, decisions } = await call(
      () => 'paid',
      mutating,
      () => round,
      { hooks: { beforeToolCall: () => ({ block: 'over the limit' }) } },
    );
    expect(ran).toEqual([]);
    expect(decisions[0]?.reason).toContain('overruled by R-6.1');
  });

  it('R-6.1 a permanent failure that took no effect may be gone round', async () => {
    const { ran } = await call(throws(Object.assign(new Error('no'), { status: 404 })), mutating, () => round);
    expect(ran).toEqual(['pay', 'other']);
  });

  it('R-6.1 failures$ tells what was decided about, too', async () => {
    const spillway = createSpillway({
      tools: [
        tool({
          name: 'pay',
          policy: { ...mutating, retry: { maxAttempts: 2 } },
          execute: throws(new Error('it broke')),
        }),
      ],
      errorHandler: () => again,
    });
    const heard = firstValueFrom(spillway.failures$);
    await spillway.execute({ toolName: 'pay' });
    expect(await heard).toMatchObject({ effects: 'mutating', error: { uncertain: true } });
  });
});
