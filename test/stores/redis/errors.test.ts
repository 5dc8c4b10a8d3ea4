import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isToolExecutionError } from '../../../src/contract/tool-error.ts';
import { redisReply, redisThrown } from '../../../src/errors/redis.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { claimOf } from '../../../src/testing/store-conformance/check.ts';

const reply = (message: string): Error =>
  Object.assign(new Error(message), { command: { name: 'auth', args: ['hunter2'] } });

describe('what Redis says', () => {
  it.each([
    [
      "OOM command not allowed when used memory > 'maxmemory'. script: 1f2e, on @user_script:12.",
      'OOM',
      'raise maxmemory',
    ],
    [
      "ERR Error running script (call to f_1f2e): @user_script:14: @user_script: 14: -OOM command not allowed when used memory > 'maxmemory'. ",
      'OOM',
      'raise maxmemory',
    ],
    ["READONLY You can't write against a read only replica.", 'READONLY', 'connect to the primary'],
    ['LOADING Redis is loading the dataset in memory', 'LOADING', 'in a moment'],
    ['MOVED 3999 127.0.0.1:6381', 'MOVED', 'cluster client'],
    ['ASK 3999 127.0.0.1:6381', 'ASK', 'cluster client'],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN', 'repair the cluster'],
    ['NOAUTH Authentication required.', 'NOAUTH', 'wants a password'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'WRONGPASS', 'correct what the client is given'],
    ['MISCONF Redis is configured to save RDB snapshots, but is unable to persist to disk.', 'MISCONF', 'its disk'],
    ['ERR unknown command', 'ERR', 'Redis answered ERR'],
  ])('R-1.1 %s', (message, code, remedy) => {
    const error = redisThrown(reply(message), 'The call could not be claimed');
    expect(error).toMatchObject({ kind: 'store_unavailable', executed: false, code });
    expect(error.message).toMatch(/^The call could not be claimed: /);
    expect(error.message).toContain(remedy);
    expect(`${JSON.stringify(error)}${String(error.cause)}${error.message}`).not.toMatch(/hunter2|127\.0\.0\.1|f_1f2e/);
  });

  it('R-12.1 a client error is no reply, and no thrown thing is too strange', () => {
    expect([
      redisReply(new Error('The client is closed')),
      redisReply(new Error('Connection is closed.')),
      redisReply(undefined),
      redisReply('OOM x'),
      redisReply(new Error('NOSCRIPT No matching script')),
    ]).toEqual([undefined, undefined, undefined, undefined, 'NOSCRIPT']);
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.string().map((text) => new Error(text)),
        ),
        (thrown) => {
          const { kind, message } = redisThrown(thrown, 'It failed');
          return kind === 'store_unavailable' && message.startsWith('It failed: ') && message.length < 300;
        },
      ),
    );
  });

  it('R-10.3 an answer that is no answer is refused, never taken for a grant', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .anything()
          .filter((value) => value !== null && typeof (Object(value) as { then?: unknown }).then !== 'function'),
        async (answer) => {
          const store = redisStore({ sendCommand: () => Promise.resolve(answer) });
          const [read, claimed] = await Promise.allSettled([store.get('k'), store.setIfNotExists(claimOf('k'))]);
          const looksRight = Array.isArray(answer) && Number.isSafeInteger(Number(answer[0])) && Number(answer[0]) > 0;
          return (
            looksRight ||
            (claimed.status === 'rejected' &&
              read.status === 'rejected' &&
              isToolExecutionError(claimed.reason) &&
              isToolExecutionError(read.reason))
          );
        },
      ),
    );
  });
});
