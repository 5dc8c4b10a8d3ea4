// Was: a process died while an alternative paid, and whoever took its key over paid again by the tool that was asked
// for, whose resource knows nothing of the other's. Now: the store has a note of the alternative before it begins.
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  createSpillway,
  tool,
  type AnyTool,
  type DedupeStore,
  type Spillway,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolPolicy,
} from 'spillway';
import type { VerifyAnswer } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { envelope } from '../call/kit.ts';

const away = (): never => {
  throw Object.assign(new Error('unavailable'), { status: 503 });
};
const never = (): Promise<never> => new Promise(() => undefined);
const request = { toolName: 'pay', input: {}, idempotencyKey: 'k' };
const asEnvelope = (
  callHints: NonNullable<ToolCallEnvelope['payload']['callHints']>,
  dedupeMode: 'enforced' | 'bestEffort' = 'enforced',
): ToolCallEnvelope =>
  envelope('pay', {
    payload: { version: '1.0', params: {}, idempotencyKey: 'k', callHints },
    transport: { dedupeMode, retryBudget: { maxAttempts: 1, maxElapsedMs: 2_000 } },
  });

interface World {
  readonly pay?: ToolPolicy;
  readonly other?: ToolPolicy;
  readonly verify?: () => VerifyAnswer;
  /** What the tools do in the process that dies. */
  readonly died?: () => unknown;
}

const LEASE_MS = 1_000;

class Payments {
  readonly runtime = virtualRuntime();
  readonly store = memoryStore({ runtime: this.runtime });
  readonly ran: string[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  tools(who: string, pays: () => unknown, paysElsewhere: () => unknown): AnyTool[] {
    const { pay, other, verify } = this.#world;
    const retry = { maxAttempts: 1 };
    return [
      tool({
        name: 'pay',
        policy: { effects: 'mutating', alternatives: ['other'], dedupe: { leaseMs: LEASE_MS }, retry, ...pay },
        execute: () => {
          this.ran.push(`${who} pays`);
          return pays();
        },
      }),
      tool({
        name: 'other',
        policy: { effects: 'mutating', retry, ...other },
        ...(verify === undefined ? {} : { verify }),
        execute: () => {
          this.ran.push(`${who} pays elsewhere`);
          return paysElsewhere();
        },
      }),
    ];
  }

  layer(own: typeof this.runtime, tools: AnyTool[], store: DedupeStore = this.store): Spillway {
    return createSpillway({ runtime: own, store, tools });
  }

  /** A process begins the call, and its own time stands still from then on. */
  async dies(
    who: string,
    pays: () => unknown = away,
    paysElsewhere: () => unknown = never,
    asked: ToolCallRequest | ToolCallEnvelope = request,
  ): Promise<void> {
    const stopped = virtualRuntime();
    void this.layer(stopped, this.tools(who, pays, paysElsewhere)).execute(asked);
    await stopped.advance(10);
    await this.runtime.advance(LEASE_MS + 1);
  }

  async asks(who: string, store: DedupeStore = this.store, asked: ToolCallRequest | ToolCallEnvelope = request) {
    const tools = this.tools(
      who,
      () => 'paid',
      () => 'paid elsewhere',
    );
    const result = this.layer(this.runtime, tools, store).execute(asked);
    await this.runtime.advance(120_000);
    return result;
  }
}

const MAY_HAVE_PAID = {
  status: 'error',
  error: { code: 'duplicate_in_flight', uncertain: true, message: expect.stringContaining('ran other') as unknown },
};

describe('R-9.6 an alternative that a process had begun which died', () => {
  it.each<[string, ToolPolicy]>([
    ['plain', {}],
    ['checked by its own resource', { enforcesKey: true }],
  ])('R-18.4 is not paid past by a tool that is %s', async (_, pay) => {
    const world = new Payments({ pay });
    await world.dies('A');
    expect(await world.asks('B')).toMatchObject(MAY_HAVE_PAID);
    expect(await world.asks('C')).toMatchObject(MAY_HAVE_PAID);
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere']);
  });

  it('R-18.4 is gone on with where its resource checks the key', async () => {
    const world = new Payments({ other: { enforcesKey: true } });
    await world.dies('A');
    expect(await world.asks('B')).toMatchObject({ status: 'success', output: { content: 'paid elsewhere' } });
    expect((await world.asks('C')).cache).toBeDefined();
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere', 'B pays elsewhere']);
  });

  it('R-18.4 is gone on with by whoever comes after a second one that died', async () => {
    const world = new Payments({ other: { enforcesKey: true } });
    await world.dies('A');
    await world.dies('B', () => 'paid');
    expect(await world.asks('C')).toMatchObject({ status: 'success' });
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere', 'B pays elsewhere', 'C pays elsewhere']);
  });

  it.each<[VerifyAnswer, string[], object]>([
    [{ done: true, output: 'seen' }, [], { status: 'success', output: { content: 'seen' } }],
    [{ done: false }, ['B pays elsewhere'], { status: 'success', output: { content: 'paid elsewhere' } }],
    ['unknown', [], { error: { code: 'duplicate_in_flight', uncertain: true } }],
  ])('R-18.4 is asked about where it can be verified: %j', async (found, more, result) => {
    const world = new Payments({ verify: () => found, other: { verify: { settleMs: 0 } } });
    await world.dies('A');
    expect(await world.asks('B')).toMatchObject(result);
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere', ...more]);
  });

  it('R-2.5 is run again by a caller who says that it is safe', async () => {
    const safe = asEnvelope({ expectedRetrySafe: true });
    const world = new Payments({});
    await world.dies('A', away, never, safe);
    expect(await world.asks('B', world.store, safe)).toMatchObject({ status: 'success' });
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere', 'B pays elsewhere']);
  });

  it('R-2.5 is not run again for a safety-critical tool, whatever allows it', async () => {
    const pay = { safetyCritical: true, verify: { settleMs: 0 } };
    const world = new Payments({ pay, other: { enforcesKey: true } });
    const tools = (who: string): AnyTool[] =>
      world
        .tools(who, away, never)
        .map((made) => (made.name === 'pay' ? { ...made, verify: () => ({ done: false }) as const } : made));
    const stopped = virtualRuntime();
    void world.layer(stopped, tools('A')).execute(request);
    await stopped.advance(10);
    await world.runtime.advance(LEASE_MS + 1);
    const asked = world.layer(world.runtime, tools('B')).execute(request);
    await world.runtime.advance(120_000);
    expect((await asked).error).toMatchObject({ code: 'duplicate_in_flight', uncertain: true });
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere']);
  });
});

it('R-7.1 R-4.1 an attempt begins when the store has answered, and has its whole time', async () => {
  const world = new Payments({ other: { enforcesKey: true } });
  await world.dies('A', never);
  const slow: DedupeStore = Object.assign(Object.create(world.store) as DedupeStore, {
    get: async (key: string) => {
      await firstValueFrom(world.runtime.after(300));
      return world.store.get(key);
    },
  });
  const layer = world.layer(world.runtime, world.tools('B', never, never), slow);
  const begun: Array<{ readonly atMs: number; readonly dueAtMs: number | undefined; readonly nowMs: number }> = [];
  layer.trace$.subscribe((event) => {
    if (event.type === 'attempt_started') {
      const { atMs, dueAtMs } = event;
      begun.push({ atMs, dueAtMs, nowMs: world.runtime.now() });
    }
  });
  void layer.execute(request);
  await world.runtime.advance(1_000);
  expect(begun).toHaveLength(1);
  expect(begun[0]?.atMs).toBe(begun[0]?.nowMs);
  expect(begun[0]?.dueAtMs).toBe((begun[0]?.nowMs ?? 0) + 30_000);
});

describe('R-9.6 a tool that ran alone in a process which died', () => {
  it('R-18.4 is taken over as before, alternatives or not', async () => {
    const world = new Payments({});
    await world.dies('A', never);
    expect(await world.asks('B')).toMatchObject({ status: 'success', output: { content: 'paid' } });
    expect(world.ran).toStrictEqual(['A pays', 'B pays']);
  });

  it('R-18.4 is so after a call whose alternative had ended, and was forgotten with it', async () => {
    const world = new Payments({ pay: { dedupe: { leaseMs: LEASE_MS, failedTtlMs: 10_000 } } });
    const stopped = virtualRuntime();
    const first = world.layer(stopped, world.tools('A', away, away)).execute(request);
    await stopped.advance(10_000);
    expect((await first).status).not.toBe('success');
    await world.runtime.advance(20_000);
    await world.dies('B', never);
    expect(await world.asks('C')).toMatchObject({ status: 'success', output: { content: 'paid' } });
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere', 'B pays', 'C pays']);
  });
});

describe('R-10.3 a store that is lost when an alternative is to begin', () => {
  const losing = (store: DedupeStore, lost: Partial<DedupeStore>): DedupeStore =>
    Object.assign(Object.create(store) as DedupeStore, lost);

  it.each<['enforced' | 'bestEffort', string[]]>([
    ['enforced', ['A pays']],
    ['bestEffort', ['A pays', 'A pays elsewhere']],
  ])('R-10.3 %s: %j', async (dedupeMode, ran) => {
    const world = new Payments({});
    let claims = 0;
    const store = losing(world.store, {
      setIfNotExists: (claim, over) => {
        if (++claims > 1) throw new Error('lost');
        return world.store.setIfNotExists(claim, over);
      },
    });
    const layer = world.layer(
      world.runtime,
      world.tools('A', away, () => 'paid elsewhere'),
      store,
    );
    const result = layer.execute(asEnvelope({}, dedupeMode));
    await world.runtime.advance(10_000);
    expect((await result).error?.code).toBe(dedupeMode === 'enforced' ? 'store_unavailable' : undefined);
    expect(world.ran).toStrictEqual(ran);
  });

  it('R-10.3 refuses where it does not say whether one had begun', async () => {
    const world = new Payments({});
    await world.dies('A');
    let looks = 0;
    const store = losing(world.store, {
      get: (key) => {
        looks++;
        throw new Error(`lost ${key}`);
      },
    });
    expect((await world.asks('B', store)).error).toMatchObject({ code: 'store_unavailable', uncertain: true });
    expect(looks).toBe(1);
    expect(world.ran).toStrictEqual(['A pays', 'A pays elsewhere']);
  });
});
