import { NEVER, Subject, defer, firstValueFrom, from, of, take, throwError, type Observable } from 'rxjs';
import type { Context } from 'rxjs-marbles';
import { describe, expect, it } from 'vitest';
import type { DedupeStore } from '../../src/contract/store.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { dedupe, type DedupeOptions } from '../../src/operators/dedupe.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';

const world = (
  m: Context,
): {
  readonly store: DedupeStore;
  readonly once: (key: string, options?: DedupeOptions) => <T>(source: Observable<T>) => Observable<T>;
} => {
  const runtime = runtimeOn(m.scheduler);
  const store = memoryStore({ runtime, sweepMs: Infinity });
  return { store, once: (key, options) => dedupe(store, key, options, runtime) };
};

const stateOf = async (store: DedupeStore, key: string): Promise<string | undefined> =>
  (await store.get(key))?.record.state;

describe('R-9.4 a stream once per key', () => {
  it(
    'R-9.4 the first subscriber runs it, and values pass as they come',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('-a-b-|');
      m.expect(source.pipe(once('k'))).toBeObservable('-a-b-|');
      m.expect(source).toHaveSubscriptions('^----!');
    }),
  );

  it(
    'R-9.4 a second one waits for the first and gets its values when they are complete',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('        -a-b-|      ');
      const deduped = source.pipe(once('k'));
      m.expect(deduped, '                     ^           ').toBeObservable('-a-b-|      ');
      m.expect(deduped, '                     --^         ').toBeObservable('-----(ab|)');
      m.expect(source).toHaveSubscriptions('  ^----!      ');
    }),
  );

  it(
    'R-9.4 everyone after it gets the values at once',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('      -a|        ');
      const deduped = source.pipe(once('k'));
      m.expect(deduped, '                   ^          ').toBeObservable('-a|');
      m.expect(deduped, '                   -----^     ').toBeObservable('-----(a|)');
      m.expect(source).toHaveSubscriptions('^-!        ');
    }),
  );

  it(
    'R-9.4 other keys are other streams',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('-a|');
      m.expect(source.pipe(once('one'))).toBeObservable('-a|');
      m.expect(source.pipe(once('two'))).toBeObservable('-a|');
      m.expect(source).toHaveSubscriptions(['^-!', '^-!']);
    }),
  );

  it(
    'R-9.4 an error is replayed as what it was classified as',
    marbles((m) => {
      const { once, store } = world(m);
      const refused = new ToolExecutionError('execution_error', 'no such user', { status: 404 });
      const source = m.cold<string>('--#', undefined, refused);
      const replayed = new ToolExecutionError('execution_error', 'no such user', {
        classification: 'permanent',
        executed: false,
      });
      m.expect(source.pipe(once('k'))).toBeObservable('--#', undefined, refused);
      m.expect(source.pipe(once('k')), '----^').toBeObservable('----#', undefined, replayed);
      m.flush();
      expect(store.get('k')).toMatchObject({
        record: { state: 'failed', error: { terminal: true, shouldRetriable: false } },
      });
    }),
  );

  it(
    'R-9.4 bestEffort errors at once while another runs, and runs again after a retriable failure',
    marbles((m) => {
      const { once } = world(m);
      const down = new ToolExecutionError('transport_error', 'reset');
      const failing = m.cold<string>('---#', undefined, down);
      const well = m.cold<string>('   a|');
      m.expect(failing.pipe(once('k', { mode: 'bestEffort' }))).toBeObservable('---#', undefined, down);
      let seen: unknown;
      m.cold('-x').subscribe(() =>
        well.pipe(once('k', { mode: 'bestEffort' })).subscribe({ error: (error: unknown) => (seen = error) }),
      );
      m.expect(well.pipe(once('k', { mode: 'bestEffort' })), '-----^').toBeObservable('-----a|');
      m.flush();
      expect(seen).toMatchObject({ kind: 'duplicate_in_flight', status: undefined });
    }),
  );

  it(
    'R-9.5 the same key with another fingerprint is a conflict, never the other’s values',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('a|');
      m.expect(source.pipe(once('k', { fingerprint: 'one' }))).toBeObservable('a|');
      let seen: unknown;
      m.cold('---x').subscribe(() =>
        source.pipe(once('k', { fingerprint: 'two' })).subscribe({ error: (error: unknown) => (seen = error) }),
      );
      m.flush();
      expect(seen).toMatchObject({ kind: 'conflict', status: 422 });
      m.expect(source).toHaveSubscriptions('^!');
    }),
  );

  it.each([[undefined], [null], [0], [''], [false], [{ a: [1, undefined] }]])(
    'R-9.4 %j is replayed as a value',
    async (value) => {
      const store = memoryStore();
      expect(await firstValueFrom(of(value).pipe(dedupe(store, 'k')))).toBe(value);
      expect(JSON.stringify([await firstValueFrom(NEVER.pipe(dedupe(store, 'k')))])).toBe(JSON.stringify([value]));
    },
  );

  it(
    'R-9.4 a stream without values is replayed as one',
    marbles((m) => {
      const { once } = world(m);
      const deduped = m.cold<string>('--|').pipe(once('k'));
      m.expect(deduped).toBeObservable('--|');
      m.expect(deduped, '----^').toBeObservable('----|');
    }),
  );

  it('R-9.4 values that are no JSON: it ran once, and whoever comes later is told so', async () => {
    const store = memoryStore();
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    let runs = 0;
    const source = defer(() => {
      runs++;
      return of(cyclic);
    });
    expect(await firstValueFrom(source.pipe(dedupe(store, 'k')))).toBe(cyclic);
    const again = firstValueFrom(source.pipe(dedupe(store, 'k')));
    await expect(again).rejects.toMatchObject({ kind: 'internal_error', classification: 'permanent' });
    expect(runs).toBe(1);
  });
});

describe('R-9.6 who leaves', () => {
  it(
    'R-9.6 unsubscribing before a value leaves the key to be cleared by hand',
    marbles((m) => {
      const { once, store } = world(m);
      const source = m.cold<string>('-----a|');
      m.expect(source.pipe(once('k')), '^--!').toBeObservable('----');
      m.expect(source).toHaveSubscriptions('^--!');
      let seen: unknown;
      m.cold('-----x').subscribe(() => source.pipe(once('k')).subscribe({ error: (error: unknown) => (seen = error) }));
      m.flush();
      expect(seen).toMatchObject({ kind: 'canceled', uncertain: true });
      expect(store.delete('k')).toBe(true);
    }),
  );

  it('R-9.6 unsubscribing after a value keeps it', async () => {
    const store = memoryStore();
    const source = from([1, 2, 3]);
    expect(await firstValueFrom(source.pipe(dedupe(store, 'k'), take(1)))).toBe(1);
    expect(await stateOf(store, 'k')).toBe('done');
    expect(await firstValueFrom(NEVER.pipe(dedupe(store, 'k')))).toBe(1);
  });

  it(
    'R-9.6 one that leaves while others wait does not take the run with it',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('      ------a|   ');
      const deduped = source.pipe(once('k'));
      m.expect(deduped, '                   ^---!      ').toBeObservable('-');
      m.expect(deduped, '                   --^        ').toBeObservable('-------(a|)');
      m.expect(source).toHaveSubscriptions('^------!   ');
    }),
  );

  it(
    'R-9.6 when the last one who waits leaves too, it stops',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('      ------a|   ');
      const deduped = source.pipe(once('k'));
      m.expect(deduped, '                   ^---!      ').toBeObservable('-');
      m.expect(deduped, '                   --^--!     ').toBeObservable('-');
      m.expect(source).toHaveSubscriptions('^----!     ');
    }),
  );
});

describe('R-9.6 leases', () => {
  it(
    'R-9.6 a lease is renewed while it runs, so that nobody takes over',
    marbles((m) => {
      const { once } = world(m);
      const source = m.cold<string>('      500ms a|');
      const deduped = source.pipe(once('k', { leaseMs: 90 }));
      m.expect(deduped).toBeObservable('500ms a|');
      m.expect(deduped, '        300ms ^').toBeObservable('501ms (a|)');
      m.expect(source).toHaveSubscriptions('^ 500ms !');
    }),
  );

  it(
    'R-9.6 one that cannot renew stops within a heartbeat of the end of its lease, and another takes over',
    marbles((m) => {
      const { store } = world(m);
      const runtime = runtimeOn(m.scheduler);
      // The reply to every renewal is lost.
      const deaf: DedupeStore = { ...store, renew: () => new Promise(() => undefined) };
      const source = m.cold<string>('500ms a|');
      let seen: unknown;
      source
        .pipe(dedupe(deaf, 'k', { leaseMs: 90 }, runtime))
        .subscribe({ error: (error: unknown) => (seen = { error, atMs: runtime.now() }) });
      m.expect(m.cold<string>('-b|').pipe(dedupe(store, 'k', { leaseMs: 90 }, runtime)), '20ms ^').toBeObservable(
        '91ms b|',
      );
      m.flush();
      expect(seen).toMatchObject({ error: { kind: 'store_unavailable', uncertain: true } });
      expect((seen as { atMs: number }).atMs).toBeLessThanOrEqual(90);
    }),
  );
});

describe('R-10.3 without the store', () => {
  const lost = (): never => {
    throw new Error('connect ECONNREFUSED');
  };
  const gone: DedupeStore = { ...memoryStore(), setIfNotExists: lost, get: lost };

  it('R-10.3 enforced refuses with a retriable error, and nothing runs', () => {
    let runs = 0;
    let seen: unknown;
    defer(() => of(++runs))
      .pipe(dedupe(gone, 'k'))
      .subscribe({ error: (error: unknown) => (seen = error) });
    expect(seen).toMatchObject({ kind: 'store_unavailable', executed: false });
    expect(runs).toBe(0);
  });

  it('R-10.3 bestEffort runs', async () => {
    expect(await firstValueFrom(of(1).pipe(dedupe(gone, 'k', { mode: 'bestEffort' })))).toBe(1);
  });

  it(
    'R-10.3 an outcome that cannot be recorded does not keep the values from anyone',
    marbles((m) => {
      const { store } = world(m);
      const runtime = runtimeOn(m.scheduler);
      const forgetful: DedupeStore = { ...store, compareAndSet: () => new Promise(() => undefined) };
      m.expect(m.cold<string>('a|').pipe(dedupe(forgetful, 'k', { storeTimeoutMs: 20 }, runtime))).toBeObservable(
        'a 20ms |',
      );
    }),
  );

  it('R-10.3 a claim that is granted after its asker left is given back', async () => {
    const store = memoryStore();
    const granted = new Subject<undefined>();
    const slow: DedupeStore = {
      ...store,
      setIfNotExists: async (claim, over) =>
        firstValueFrom(granted, { defaultValue: undefined }).then(() => store.setIfNotExists(claim, over)),
    };
    throwError(() => new Error('never subscribed to'))
      .pipe(dedupe(slow, 'k'))
      .subscribe()
      .unsubscribe();
    granted.next(undefined);
    await expect.poll(() => stateOf(store, 'k')).toBeUndefined();
    expect(await firstValueFrom(of(1).pipe(dedupe(store, 'k')))).toBe(1);
  });
});

describe('R-2.9 options', () => {
  it.each([
    [{ leaseMs: 0 }, 'leaseMs'],
    [{ mode: 'disabled' }, 'mode'],
    [{ ttl: 5 }, 'ttl'],
  ])('R-2.9 %j is refused by name', (options, name) => {
    expect(() => dedupe(memoryStore(), 'k', options as DedupeOptions)).toThrow(name);
    expect(() => dedupe(memoryStore(), '')).toThrow(RangeError);
  });
});
