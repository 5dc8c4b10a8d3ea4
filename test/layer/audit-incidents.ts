import type { ToolCallEnvelope } from 'spillway';
import { answered, reset, type Audit } from './audit-world.ts';

const never = (): Promise<never> => new Promise(() => undefined);
export const TWICE_ID = '01890a5d-ac96-774b-bcce-b302099a8057';

/** A payment whose caller says that repeating it does no harm. */
const repeatable: ToolCallEnvelope = {
  contractVersion: '1.1',
  requestId: TWICE_ID,
  toolName: 'pay',
  toolNamespace: 'bank',
  target: { sessionKey: 's', actorId: 'ada', agentId: 'clerk' },
  payload: { version: '1.0', params: { order: 'twice' }, callHints: { expectedRetrySafe: true } },
  transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 3, maxElapsedMs: 60_000 } },
  control: {},
  trace: {},
};

/** Effects in doubt, errors of several rules, waits of several kinds. */
export const doubts = async (audit: Audit): Promise<void> => {
  for (const order of ['twice', 'wired', 'once', 'refunded'])
    audit.does(order, (attempt) => (attempt === 1 ? never() : 'ok'));
  audit.does('ledger', () => ({ found: true }));
  audit.beginEnvelope('twice', repeatable);
  audit.begin('wired', 'wire', { idempotencyKey: 'w' });
  audit.begin('once', 'pay');
  audit.begin('refunded', 'refund');
  await audit.pass(20_000);
  audit.does('is 503', () => Promise.reject(answered(503)));
  audit.begin('is 503', 'legacy');
  audit.begin('is 503', 'search', { as: 'is 503 elsewhere' });
  audit.does('hinted', (attempt) => (attempt === 1 ? Promise.reject(answered(429, 2_500)) : 'ok'));
  audit.does('hinted too long', () => Promise.reject(answered(429, 90_000)));
  audit.begin('hinted', 'search');
  audit.begin('hinted too long', 'search');
  audit.does('unsaid', (attempt) => (attempt === 1 ? Promise.reject(reset()) : 'ok'));
  audit.begin('unsaid', 'unsaid');
  await audit.pass(20_000);
  audit.begin('screened', 'search');
  audit.begin('screened again', 'search', { idempotencyKey: 'screened' });
  audit.begin('embargo', 'search');
  audit.does('hurried', () => audit.after(4_000, 'late'));
  audit.begin('hurried', 'search', { timeoutMs: 1_500 });
  await audit.pass(10_000);
};

/** The breaker of `rates` opens in the west, is probed in vain, closes; then a person opens and resets it. */
export const outage = async (audit: Audit): Promise<void> => {
  let isDown = true;
  audit.does('rates', () => audit.after(50, 0).then(() => (isDown ? Promise.reject(reset()) : 'ok')));
  for (const order of ['rates 1', 'rates 2', 'rates 3']) {
    audit.does(order, () => Promise.reject(reset()));
    audit.begin(order, 'rates', {}, audit.west);
    await audit.pass(10);
  }
  audit.begin('kept away', 'rates');
  await audit.pass(6_000);
  audit.begin('in vain', 'rates', { input: { order: 'rates' } });
  audit.begin('beside it', 'rates', { input: { order: 'rates' } });
  await audit.pass(12_000);
  isDown = false;
  audit.begin('closes it', 'rates', { input: { order: 'rates' } });
  await audit.pass(1_000);
  await audit.east.orderBreakers('force_open', { tool: 'rates' });
  audit.begin('forced away', 'rates');
  await audit.pass(1_000);
  await audit.east.orderBreakers('reset', { tool: 'rates' });
  await audit.pass(1_000);
};

/** Keys: a conflict, a leader in the other process, and one that is cut off while it holds a key. */
export const keys = async (audit: Audit): Promise<void> => {
  audit.does('shared', () => audit.after(500, 'the one result'));
  audit.begin('shared', 'wire', { idempotencyKey: 'k1', session: 'a' }, audit.west);
  await audit.pass(10);
  audit.begin('shared', 'wire', { idempotencyKey: 'k1', session: 'a', as: 'follower' });
  await audit.pass(3_000);
  audit.begin('other', 'wire', { idempotencyKey: 'k1', session: 'a', as: 'conflicting' });
  await audit.pass(100);
  audit.does('left behind', () => never());
  audit.begin('left behind', 'search', { idempotencyKey: 'k2' }, audit.west);
  await audit.pass(10);
  audit.isCutOff = true;
  audit.does('left behind', () => 'found after all');
  audit.begin('left behind', 'search', { idempotencyKey: 'k2', as: 'successor' });
  await audit.pass(200_000);
  audit.isCutOff = false;
  await audit.pass(10_000);
};

/** A storm in a quiet hour, which spends the retry budget; people; and what shadow mode would have done. */
export const storm = async (audit: Audit): Promise<void> => {
  audit.does('storm', () => Promise.reject(reset()));
  for (let n = 0; n < 20; n++) audit.begin('storm', 'search', { as: `storm ${n}`, tenant: 'calm' });
  await audit.pass(20_000);
  for (const order of ['wipe a', 'wipe b', 'wipe it all']) audit.begin(order, 'wipe', { session: 'desk' });
  await audit.pass(5_000);
  audit.does('trial 1', () => Promise.reject(reset()));
  audit.does('trial 2', () => audit.after(6_000, 'slow but there'));
  for (const order of ['trial 1', 'trial 2', 'trial 3']) audit.begin(order, 'trial');
  await audit.pass(10_000);
};

/** Turns: one that waits, one that ends with a part, and one whose tool no layer knows. */
export const turns = async (audit: Audit): Promise<void> => {
  const node = (id: string, name: string, order: string, needs: readonly string[] = []) => ({
    id,
    tool: name,
    input: { order },
    needs,
  });
  audit.does('slow a', () => audit.after(2_500, 'a'));
  audit.does('quick x', () => audit.after(300, 'x'));
  audit.turn('waits', [
    node('A', 'search', 'slow a'),
    node('X', 'search', 'quick x'),
    node('B', 'search', 'b', ['A', 'X']),
  ]);
  audit.does('gone', () => Promise.reject(answered(404)));
  audit.turn('part', [
    { ...node('weather', 'search', 'gone'), optional: true },
    { ...node('plan', 'search', 'p', ['weather']), default: 'sunny' },
    { ...node('photo', 'search', 'gone'), optional: true },
    { ...node('album', 'search', 'al', ['photo']), optional: true },
  ]);
  const errand = audit.tool('errand', { effects: 'mutating', timeoutMs: 700, retry: { maxAttempts: 1 } });
  audit.turn('errands', [
    { id: 'one', tool: errand, input: { order: 'e1' }, needs: [] },
    { id: 'two', tool: errand, input: { order: 'e2' }, needs: ['one'] },
  ]);
  audit.does('quote', () => Promise.reject(reset()));
  audit.begin('quote', 'quote');
  await audit.pass(20_000);
};
