// Was: a 503 after a lost connection made the doubt about the first attempt forgotten, so that an alternative paid too.
// Now: doubt stays.
import { describe, expect, it } from 'vitest';
import { createSpillway, tool } from 'spillway';

const lost = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const refused = (): Error => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
const away = (): Error => Object.assign(new Error('unavailable'), { status: 503 });

const payments = async (
  errors: ReadonlyArray<() => unknown>,
): Promise<{ ran: string[]; uncertain: boolean | undefined }> => {
  const ran: string[] = [];
  const left = [...errors];
  const pay = tool({
    name: 'pay',
    policy: {
      effects: 'mutating',
      enforcesKey: true,
      retry: { maxAttempts: errors.length, initialDelayMs: 1, maxDelayMs: 1 },
      alternatives: ['other'],
    },
    execute: () => {
      ran.push('pay');
      throw left.shift()?.() as Error;
    },
  });
  const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => ran.push('other') });
  const { error } = await createSpillway({ tools: [pay, other] }).execute({ toolName: 'pay', input: {} });
  return { ran, uncertain: error?.uncertain };
};

describe('doubt that stays', () => {
  it('R-2.5 an attempt that may have taken effect is not undone by what a later one proves', async () => {
    expect(await payments([lost, away])).toStrictEqual({ ran: ['pay', 'pay'], uncertain: true });
  });

  it('R-2.5 where no attempt left it open, the alternative runs', async () => {
    expect(await payments([refused, away])).toStrictEqual({ ran: ['pay', 'pay', 'other'], uncertain: undefined });
  });

  it('R-2.5 of several errors at once one that was never sent proves nothing about the others', async () => {
    const several = (): Error => new AggregateError([refused(), lost()], 'all failed');
    expect(await payments([several])).toStrictEqual({ ran: ['pay'], uncertain: true });
  });

  it('R-2.5 a server that shuts down in the middle may have done it', async () => {
    const shutdown = (): Error =>
      Object.assign(new Error('Server shutdown in progress'), { code: 'ER_SERVER_SHUTDOWN' });
    expect(await payments([shutdown])).toStrictEqual({ ran: ['pay'], uncertain: true });
  });
});
