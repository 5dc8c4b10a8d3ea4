import { describe, expect, it } from 'vitest';
import type { DedupeClaim } from '../../../src/contract/store.ts';
import { Dice } from '../dice.ts';
import { StoreHistory, type Asked } from './history.ts';
import { whyNotLinearizable } from './linearizable.ts';
import { NOTHING, answer, type Kept, type StoreAnswer, type StoreQuestion } from './store-model.ts';

const claimOf = (requestId: string, leaseMs = 100): DedupeClaim => ({
  key: 'k',
  tool: 't',
  idempotencyKey: 'k',
  request: { sessionKey: 's', actorId: 'a', requestId, paramsDigest: 'p' },
  leaseMs,
  ttlMs: 10_000,
});
const claim = (requestId: string, over?: number): StoreQuestion => ({ ask: 'claim', claim: claimOf(requestId), over });
const done = (version: number, payload: string): StoreQuestion => ({
  ask: 'end',
  version,
  outcome: { state: 'done', ttlMs: 10_000, payload },
});

/** A history of one key, with answers of the model, or such as no store may give. */
class Told {
  readonly history: StoreHistory = new StoreHistory();
  kept: Kept = NOTHING;
  atMs = 1_000;

  get asked(): readonly Asked[] {
    return this.history.byKey.get('k') ?? [];
  }

  happens(question: StoreQuestion): StoreAnswer {
    const [kept, reply] = answer(this.kept, question, this.atMs);
    this.kept = kept;
    return reply;
  }

  /** Asked, done and answered, a millisecond each. */
  whole(question: StoreQuestion, instead?: (reply: StoreAnswer) => StoreAnswer): StoreAnswer {
    const asked = this.history.sent('k', question, this.atMs++);
    const reply = this.happens(question);
    this.history.heard(asked, instead === undefined ? reply : instead(reply), this.atMs++);
    return reply;
  }

  lost(question: StoreQuestion, happens: boolean): void {
    this.history.sent('k', question, this.atMs++);
    if (happens) this.happens(question);
    this.atMs++;
  }
}

const versionOf = (reply: StoreAnswer): number =>
  typeof reply === 'object' && 'record' in reply ? reply.record.version : 0;

describe('IDEM-6 the judge of a store’s history', () => {
  it('accepts one thing after the other, a takeover among them', () => {
    const told = new Told();
    const first = versionOf(told.whole(claim('a')));
    told.whole(claim('b'));
    told.atMs += 200;
    const second = versionOf(told.whole(claim('b', first)));
    told.whole(done(first, 'late'));
    told.whole(done(second, '"b"'));
    told.whole({ ask: 'get' });
    expect(whyNotLinearizable(told.asked)).toBeUndefined();
  });

  it('accepts what a lost question did, and that it did nothing', () => {
    for (const happens of [true, false]) {
      const told = new Told();
      told.lost(claim('a'), happens);
      told.whole(claim('b'));
      told.whole({ ask: 'get' });
      expect(whyNotLinearizable(told.asked), String(happens)).toBeUndefined();
    }
  });

  it.each<readonly [string, (told: Told) => void]>([
    [
      'a second claim that is granted while the first runs',
      (told) => {
        told.whole(claim('a'));
        told.kept = NOTHING;
        told.whole(claim('b'));
      },
    ],
    [
      'a stale read after a completion',
      (told) => {
        const version = versionOf(told.whole(claim('a')));
        const before = told.happens({ ask: 'get' });
        told.whole(done(version, '"a"'));
        told.whole({ ask: 'get' }, () =>
          typeof before === 'object' && 'record' in before ? { ...before, atMs: told.atMs } : before,
        );
      },
    ],
    [
      'a completion by one who was overtaken',
      (told) => {
        const first = versionOf(told.whole(claim('a')));
        told.atMs += 200;
        const second = versionOf(told.whole(claim('b', first)));
        told.kept = {
          ...told.kept,
          ...(told.kept.record === undefined ? {} : { record: { ...told.kept.record, version: first } }),
        };
        told.whole(done(first, '"a"'));
        told.whole(done(second, '"b"'));
      },
    ],
    [
      'a fence that is given twice',
      (told) => {
        const version = versionOf(told.whole(claim('a')));
        told.whole({ ask: 'delete', version });
        told.whole(claim('b'), (reply) =>
          typeof reply === 'object' && 'record' in reply ? { ...reply, record: { ...reply.record, version } } : reply,
        );
      },
    ],
    [
      'a record that comes back after it was removed',
      (told) => {
        const version = versionOf(told.whole(claim('a')));
        const { kept } = told;
        told.whole({ ask: 'delete', version });
        told.kept = kept;
        told.whole({ ask: 'get' });
      },
    ],
    [
      'a lease that is shorter than it was asked for',
      (told) => {
        told.whole(claim('a'));
        told.whole({ ask: 'get' }, (reply) =>
          typeof reply === 'object' && 'record' in reply
            ? { ...reply, record: { ...reply.record, lockUntilMs: reply.atMs + 1 } }
            : reply,
        );
      },
    ],
  ])('refuses %s', (_, tell) => {
    const told = new Told();
    tell(told);
    expect(whyNotLinearizable(told.asked)).toBeDefined();
  });

  it('accepts whatever the model answers in whatever order, and refuses a value that was never written', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const dice = new Dice(seed, 12);
      const told = new Told();
      const pending: Array<{
        readonly asked: Asked;
        readonly question: StoreQuestion;
        reply?: StoreAnswer;
        happened: boolean;
      }> = [];
      const versions = [0];
      for (let step = 0; step < 24; step++) {
        told.atMs += dice.pick([0, 1, 30]);
        const version = versions[dice.int(Math.max(0, versions.length - 2), versions.length - 1)] ?? 0;
        if (dice.chance(0.5)) {
          const question = dice.pick<StoreQuestion>([
            { ask: 'get' },
            claim(`r${step}`),
            claim(`r${step}`, version),
            done(version, `"${step}"`),
            { ask: 'renew', version, leaseMs: 50 },
            { ask: 'delete', version },
          ]);
          pending.push({ asked: told.history.sent('k', question, told.atMs), question, happened: false });
          continue;
        }
        const one = pending[dice.int(0, pending.length - 1)];
        if (one === undefined) continue;
        if (!one.happened) {
          one.happened = true;
          one.reply = told.history.happens(one.asked, () => told.happens(one.question));
          versions.push(versionOf(one.reply));
        } else if (one.asked.heardAt === undefined && dice.chance(0.7))
          told.history.heard(one.asked, one.reply, told.atMs);
      }
      expect(whyNotLinearizable(told.asked), `seed ${seed}`).toBeUndefined();
      told.atMs += 1;
      told.whole({ ask: 'get' }, () => ({
        atMs: told.atMs,
        record: {
          key: 'k',
          tool: 't',
          idempotencyKey: 'k',
          state: 'done',
          createdAtMs: 0,
          updatedAtMs: 0,
          expiresAtMs: told.atMs + 5,
          ttlMs: 5,
          request: claimOf('nobody').request,
          payload: '"no"',
          version: 9e15,
        },
      }));
      expect(whyNotLinearizable(told.asked), `seed ${seed}, spoilt`).toBeDefined();
    }
  });
});
