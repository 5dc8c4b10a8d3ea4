// Was: words inside a code of no service that we know (`storage/unauthorized`, `receipt_not_found`) counted as a
// refusal, and of several errors at once a refusal hid a lost connection, so that an alternative paid again. Now: both
// prove nothing.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool } from '../../src/index.ts';
import { toToolError } from '../../src/errors/read-error.ts';
import { doubted } from '../../src/policy/recovery/proof.ts';

const withFields = (fields: object): Error => Object.assign(new Error('no receipt'), fields);

/** What ran when a payment is made and its tool throws after it, with an alternative that pays another way. */
const paidBy = async (thrown: unknown): Promise<{ readonly payments: readonly string[]; readonly doubt: unknown }> => {
  const payments: string[] = [];
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', alternatives: ['pay_by_card'], retry: { maxAttempts: 3, initialDelayMs: 1 } },
    execute: () => {
      payments.push('pay');
      throw thrown;
    },
  });
  const byCard = tool({
    name: 'pay_by_card',
    policy: { effects: 'mutating' },
    execute: () => payments.push('pay_by_card'),
  });
  const { error } = await createSpillway({ tools: [pay, byCard] }).execute({ toolName: 'pay', input: {} });
  return { payments, doubt: error?.uncertain };
};
const leavesOpen = (thrown: unknown): boolean => doubted(toToolError(thrown, 'tool'), 'mutating').uncertain;

describe('R-2.5 words inside a code', () => {
  it.each<readonly [string, object]>([
    ['the store of the receipt refused', { code: 'storage/unauthorized' }],
    ['who gets the receipt is not known', { code: 'recipient_not_found' }],
    ['the receipt does not fit its template', { code: 'TEMPLATE_VALIDATION_FAILED' }],
    ['the mail’s quota is used up', { code: 'MailboxQuotaExceeded' }],
    ['the mail is throttled', { code: 'smtp_throttled' }],
    ['the mail server was not reached', { code: 'mail-host-unreachable' }],
    ['a type instead of a code', { type: 'webhook_signature_invalid' }],
    ['a code of the answer’s body', { response: { data: { error: { code: 'loyalty_account_not_found' } } } }],
    ['a code of the cause', { cause: { code: 'receipt_template_missing' } }],
  ])('R-2.5 %s, after the payment: it is paid once', async (_what, fields) => {
    expect(await paidBy(withFields(fields))).toEqual({ payments: ['pay'], doubt: true });
  });

  it('R-1.3 say as ever whether trying again can help', () => {
    expect(toToolError(withFields({ code: 'recipient_not_found' }), 'tool').classification).toBe('permanent');
    expect(toToolError(withFields({ code: 'smtp_throttled' }), 'tool').classification).toBe('transient');
  });

  it('R-2.5 a code that a service documents is a refusal still', async () => {
    for (const code of ['card_declined', 'insufficient_funds', 'ThrottlingException', 'P2002', '23505']) {
      expect(leavesOpen(withFields({ code }))).toBe(false);
    }
    expect(await paidBy(withFields({ code: 'card_declined' }))).toEqual({
      payments: ['pay', 'pay_by_card'],
      doubt: undefined,
    });
  });

  it('R-2.5 whatever words a code is made of, without a status it proves nothing', () => {
    const word = fc.constantFrom('card', 'receipt', 'invalid', 'not', 'found', 'denied', 'expired', 'limit', 'quota');
    const code = fc
      .tuple(fc.constantFrom('_', '-', '/', '.', ':'), fc.array(word, { minLength: 3, maxLength: 5 }))
      .map(([glue, words]) => words.join(glue));
    fc.assert(fc.property(code, (own) => leavesOpen(withFields({ code: own }))));
  });
});

describe('R-2.5 several errors at once', () => {
  const refused = withFields({ status: 402 });
  const declined = withFields({ code: 'card_declined' });
  const unreached = withFields({ code: 'ECONNREFUSED' });
  const lost = withFields({ code: 'ECONNRESET' });
  const failed = withFields({ status: 500 });
  const bare = new Error('it broke');

  it.each<readonly [string, readonly unknown[]]>([
    ['a refusal and a lost connection', [refused, lost]],
    ['a code that refuses and a lost connection', [declined, lost]],
    ['a refusal and a failure of the server', [refused, failed]],
    ['a refusal and an error that says nothing', [refused, bare]],
    ['one that was never sent, a refusal and one that was lost', [unreached, refused, lost]],
  ])('R-2.5 %s leave it open, in any order', (_what, errors) => {
    for (const several of [errors, errors.toReversed()]) {
      expect(leavesOpen(new AggregateError(several))).toBe(true);
      expect(leavesOpen(new Error('all failed', { cause: new AggregateError(several) }))).toBe(true);
    }
  });

  it('R-2.5 nor do refusals and what was never sent prove it: that is true of one step, and of none before it', () => {
    for (const errors of [
      [refused, unreached],
      [unreached, refused],
      [unreached, unreached],
      [declined, refused],
    ]) {
      expect(leavesOpen(new AggregateError(errors))).toBe(true);
    }
    // Node's own, of a connection that was refused at each address, says so itself.
    const ofNode = Object.assign(new AggregateError([unreached, unreached]), { code: 'ECONNREFUSED' });
    expect(leavesOpen(ofNode)).toBe(false);
  });

  it('R-2.5 two ways to pay at once, of which one refused and one was lost: no third is tried', async () => {
    expect(await paidBy(new AggregateError([refused, lost], 'all failed'))).toEqual({ payments: ['pay'], doubt: true });
  });
});
