// Was: after a payment that may have been made an alternative paid again, where the tool's own resource checks its key
// or its caller allowed a retry. Now: a leave to repeat a call is none to make it elsewhere.
import { describe, expect, it } from 'vitest';
import {
  createSpillway,
  decideRecovery,
  tool,
  type ErrorHandler,
  type FailureNotification,
  type ToolPolicy,
} from 'spillway';
import { virtualRuntime } from 'spillway/testing';

const lost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
const round: ErrorHandler = ({ alternatives: [toolName = ''] }) => ({
  strategy: 'alternative',
  toolName,
  code: 'guidance',
  reason: 'the host wants it',
});

/** What ran when `pay`, which has an alternative, always loses its connection after the payment. */
const ranBy = async (policy: ToolPolicy, errorHandler?: ErrorHandler): Promise<readonly string[]> => {
  const ran: string[] = [];
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', alternatives: ['other'], retry: { maxAttempts: 2, initialDelayMs: 1 }, ...policy },
    execute: () => {
      ran.push('pay');
      throw lost();
    },
  });
  const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => ran.push('other') });
  const runtime = virtualRuntime();
  const spillway = createSpillway({
    tools: [pay, other],
    runtime,
    ...(errorHandler === undefined ? {} : { errorHandler }),
  });
  const running = spillway.execute({ toolName: 'pay' });
  await runtime.advance(10_000);
  await running;
  return ran;
};

describe('R-6.1 an alternative to what may have been done', () => {
  it('R-6.1 is not used where only the failed tool’s resource checks the key', async () => {
    expect(await ranBy({ enforcesKey: true })).toStrictEqual(['pay', 'pay']);
  });

  it('R-6.1 cannot be ordered by a handler either', async () => {
    expect(await ranBy({ enforcesKey: true }, round)).toStrictEqual(['pay', 'pay']);
  });

  it('R-6.1 is used where nothing is written', async () => {
    expect(await ranBy({ effects: 'read' })).toStrictEqual(['pay', 'pay', 'other']);
  });

  it.each([{ hasIdempotencyKey: true }, { retrySafe: true }])(
    'R-6.1 is not decided for by the default with %j',
    (leave) => {
      const failure = {
        toolName: 'pay',
        callId: 'c',
        classification: 'transient',
        breakerState: 'closed',
        attempt: 2,
        maxAttempts: 2,
        elapsedMs: 1,
        maxTotalTimeMs: 1_000,
        nextDelayMs: 1,
        turnRemainingMs: Infinity,
        budgetAvailable: true,
        alternatives: ['other'],
        required: true,
        effects: 'mutating',
        hasIdempotencyKey: false,
        retrySafe: false,
        error: { kind: 'transport_error', uncertain: true, executed: true, message: '' },
        ...leave,
      } as unknown as FailureNotification;
      expect(decideRecovery(failure)).toMatchObject({ strategy: 'escalate', code: 'attempts_exhausted' });
      expect(decideRecovery({ ...failure, attempt: 1 })).toMatchObject({ strategy: 'retry' });
    },
  );
});
