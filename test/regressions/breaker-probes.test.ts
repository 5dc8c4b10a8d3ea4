// Was: slow probes closed a breaker, a stream that flowed was revoked as a stuck probe, a refusal named half-open's
// deadline. Now: as say.
import { Subject, defer, delay, firstValueFrom, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  ToolExecutionError,
  attemptTimeout,
  circuitBreaker,
  createBreaker,
  createSpillway,
  guard,
  tool,
  type Breaker,
} from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { halfOpen, make, opened } from '../operators/made-breakers.ts';
import { fail, permit, succeed } from '../support.ts';

const asksToWait = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('execution_error', 'slow down', { status: 503, retryAfterMs });

describe('R-3.9 slow probes', () => {
  it('R-3.9 a slow probe is a bad probe: it opens again, for its cooldown', () => {
    const { breaker, clock } = halfOpen({ slowCallMs: 100, successThreshold: 1 });
    const probe = permit(breaker);
    clock.pass(101);
    probe.success();
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1_000 });
  });

  it('R-3.9 one that takes just as long as it may is a good one', () => {
    const { breaker, clock } = halfOpen({ slowCallMs: 100, successThreshold: 1 });
    const probe = permit(breaker);
    clock.pass(100);
    probe.success();
    expect(breaker.state.type).toBe('closed');
  });
});

describe('R-3.8 the cap of the cooldown', () => {
  it('R-3.8 a server that asks for an hour gets no more than cooldownMaxMs, from a call and from a probe', () => {
    const { breaker, clock } = make({ cooldownMaxMs: 5_000 });
    for (let turn = 0; turn < 2; turn++) {
      permit(breaker).failure(asksToWait(3_600_000));
      expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 5_000 });
      expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 5_000 });
      clock.pass(5_000);
      expect(breaker.state.type).toBe('half_open');
    }
  });

  it('R-2.4 a server is believed for an hour at most, whatever cooldownMaxMs allows', () => {
    const { breaker, clock } = make({ cooldownMaxMs: 10_000_000 });
    permit(breaker).failure(asksToWait(7_200_000));
    clock.pass(3_599_999);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1 });
    clock.pass(1);
    expect(breaker.state.type).toBe('half_open');
  });

  it('R-3.8 no refusal names more, not of a breaker that a person opened, not of one that ramps', () => {
    const { breaker, clock } = make({ cooldownMs: 5_000, cooldownMaxMs: 400, rampMs: 10_000, successThreshold: 1 });
    breaker.forceOpen();
    expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 400 });
    breaker.reset();
    fail(breaker);
    clock.pass(400);
    succeed(breaker);
    clock.draw(0.99);
    expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 400 });
  });
});

describe('R-3.8 the hint of a refusal while a probe is out', () => {
  it('R-3.8 it is as long as the probe has been out: soon at first, and never beyond half-open’s deadline', () => {
    const { breaker, clock } = halfOpen();
    permit(breaker);
    const hints = [0, 50, 100, 300, 9_550, 40_000, 9_999].map((ms) => {
      clock.pass(ms);
      const admission = breaker.admit();
      return admission.admitted ? 'admitted' : admission.retryAfterMs;
    });
    expect(hints).toEqual([100, 100, 150, 450, 10_000, 10_000, 1]);
  });

  it('R-3.8 a call of the layer says so', async () => {
    const runtime = virtualRuntime();
    let up = false;
    const flaky = tool({
      name: 'flaky',
      policy: { retry: { maxAttempts: 1 } },
      execute: () => (up ? of('fine').pipe(delay(50, runtime.scheduler)) : throwError(() => new Error('ECONNRESET'))),
    });
    const spillway = createSpillway({ tools: [flaky], runtime });
    for (let failure = 0; failure < 5; failure++) await spillway.execute({ toolName: 'flaky' });
    await runtime.advance(30_000);
    up = true;
    const probe = spillway.execute({ toolName: 'flaky' });
    const hints: unknown[] = [];
    spillway.trace$.subscribe((event) => event.type === 'rejected' && hints.push(event.error.retryAfterMs));
    expect((await spillway.execute({ toolName: 'flaky' })).status).toBe('circuit_open');
    expect(hints).toEqual([100]);
    await runtime.advance(50);
    expect((await probe).status).toBe('success');
  });
});

describe('R-3.5 half-open’s deadline', () => {
  const wait = { cooldownMs: 1_000, halfOpenTimeoutMs: 5_000, successThreshold: 1 } as const;

  it('R-3.5 a probe that is a stream and flows is not revoked; its silence counts from its last value', () => {
    const { breaker, clock } = opened(wait);
    clock.pass(1_000);
    const values = new Subject<number>();
    const seen: unknown[] = [];
    values.pipe(circuitBreaker(breaker)).subscribe((value) => seen.push(value));
    for (let value = 0; value < 10; value++) {
      clock.pass(4_000);
      values.next(value);
    }
    expect([seen.length, breaker.state.type]).toEqual([10, 'half_open']);
    clock.pass(4_999);
    expect(breaker.state.type).toBe('half_open');
    clock.pass(1);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.5 and when it completes it is a good one, however long it took', () => {
    const { breaker, clock } = opened(wait);
    clock.pass(1_000);
    const values = new Subject<number>();
    const states: string[] = [];
    breaker.state$.subscribe(({ type }) => states.push(type));
    values.pipe(guard({ breaker })).subscribe();
    for (let value = 0; value < 3; value++) {
      clock.pass(4_000);
      values.next(value);
    }
    values.complete();
    expect(states).toEqual(['half_open', 'closed']);
    expect(clock.runtime.timers).toBe(0);
  });

  it('R-3.5 values of a call that is no probe, or of a revoked one, prolong nothing', () => {
    const { breaker, clock } = make({ ...wait, failureThreshold: 2 });
    const before = permit(breaker);
    fail(breaker, 2);
    clock.pass(1_000);
    permit(breaker);
    clock.pass(4_000);
    before.progress?.();
    clock.pass(1_000);
    expect(breaker.state.type).toBe('open');
    clock.pass(1_000);
    const revoked = permit(breaker);
    clock.pass(6_000);
    permit(breaker);
    clock.pass(4_000);
    revoked.progress?.();
    clock.pass(1_000);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.5 T10 half-open outlasts a slow and healthy tool: one probe that takes as long as its timeout closes it', async () => {
    const runtime = virtualRuntime();
    let up = false;
    const slow = tool({
      name: 'slow',
      policy: { timeoutMs: 120_000, retry: { maxAttempts: 1 }, breaker: { successThreshold: 1 } },
      execute: () =>
        up ? of('fine').pipe(delay(119_999, runtime.scheduler)) : throwError(() => new Error('ECONNRESET')),
    });
    const exact = {
      ...slow,
      name: 'exact',
      policy: { ...slow.policy, timeoutMs: 60_000 },
      execute: () => (up ? of('fine').pipe(delay(60_000, runtime.scheduler)) : slow.execute({}, {} as never)),
    };
    const spillway = createSpillway({ tools: [slow, exact], runtime });
    for (const toolName of ['slow', 'exact'])
      for (let failure = 0; failure < 5; failure++) await spillway.execute({ toolName });
    await runtime.advance(30_000);
    up = true;
    const probes = ['slow', 'exact'].map((toolName) => spillway.execute({ toolName }));
    await runtime.advance(120_000);
    expect((await Promise.all(probes)).map(({ status }) => status)).toEqual(['success', 'success']);
    expect(['slow', 'exact'].map((toolName) => spillway.breakers.get(toolName).state.type)).toEqual([
      'closed',
      'closed',
    ]);
  });
});

describe('R-3.5 one breaker twice in a pipe', () => {
  const nestings: Readonly<Record<string, (breaker: Breaker, work: () => Promise<string>) => Promise<string>>> = {
    'circuitBreaker in circuitBreaker': (breaker, work) =>
      firstValueFrom(defer(work).pipe(circuitBreaker(breaker), circuitBreaker(breaker))),
    'guard in guard': (breaker, work) =>
      firstValueFrom(guard({ breaker }).from(() => firstValueFrom(guard({ breaker }).from(work)))),
    'after a while': (breaker, work) =>
      firstValueFrom(
        defer(async () => {
          await Promise.resolve();
          return firstValueFrom(defer(work).pipe(circuitBreaker(breaker)));
        }).pipe(attemptTimeout(1_000), circuitBreaker(breaker)),
      ),
    'three deep': (breaker, work) =>
      firstValueFrom(defer(work).pipe(circuitBreaker(breaker), circuitBreaker(breaker), circuitBreaker(breaker))),
  };

  it.each(Object.keys(nestings))('R-3.5 %s: it closes again after an outage', async (name) => {
    const runtime = virtualRuntime();
    const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 1_000 }, runtime);
    let up = false;
    const call = (): Promise<string> =>
      (
        nestings[name]?.(breaker, () => (up ? Promise.resolve('fine') : Promise.reject(new Error('ECONNRESET')))) ??
        Promise.reject(new Error('no such nesting'))
      ).catch(() => 'failed');
    expect(await call()).toBe('failed');
    expect(breaker.state.type).toBe('open');
    await runtime.advance(1_000);
    up = true;
    const gave: string[] = [];
    for (let turn = 0; turn < 6; turn++) gave.push(await call());
    expect(gave.slice(-3)).toEqual(['fine', 'fine', 'fine']);
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.5 places so made are gone with the next half-open period, and another breaker’s refusal makes none', () => {
    const other = createBreaker({ initialState: 'forced_open' });
    const { breaker, clock } = halfOpen();
    const [inner$, foreign$] = [breaker, other].map((inside) =>
      of(1).pipe(circuitBreaker(inside), circuitBreaker(breaker)),
    );
    const probesAtATime = (): number => {
      const admitted = Array.from({ length: 5 }, () => breaker.admit()).filter((admission) => admission.admitted);
      for (const probe of admitted) if (probe.admitted) probe.release();
      return admitted.length;
    };
    foreign$?.subscribe({ error: () => undefined });
    expect(probesAtATime()).toBe(1);
    inner$?.subscribe({ error: () => undefined });
    expect(probesAtATime()).toBe(2);
    fail(breaker);
    clock.pass(1_000);
    expect(probesAtATime()).toBe(1);
  });
});
