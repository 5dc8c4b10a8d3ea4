import { redisStore } from '../src/stores/redis.ts';
import { redisCommands } from '../src/stores/redis/client.ts';
import { CLIENTS, at } from '../test/stores/redis/clients.ts';
import { requireRedis, startRedis } from '../test/stores/redis/server.ts';
import { sideBySide, type Figure, type Question } from './measure.ts';

const CLAIMS = 10_000;
const IN_FLIGHT = 200;
const ROUNDS = 7;
const LONG_MS = 600_000;

const QUESTION = 'What does a claim in Redis cost beside a bare SET NX, 200 in flight on one connection?';

/** Keeps so many under way, as a process with as many calls does. */
const pipelined = async (work: (n: number) => PromiseLike<unknown>): Promise<void> => {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < CLAIMS) await work(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
};

/**
 * Claims through the store against `SET NX PX` by the same client. Skipped, with the reason, where there is no
 * redis-server.
 */
export async function benchmarkRedis(): Promise<Question> {
  try {
    requireRedis();
  } catch (error) {
    process.stdout.write(`skipped: ${error instanceof Error ? error.message : String(error)}\n`);
    return { question: `${QUESTION} (skipped)`, figures: [], ratios: {} };
  }
  const server = await startRedis();
  const figures: Figure[] = [];
  const ratios: Record<string, number> = {};
  try {
    for (const [name, connect] of CLIENTS) {
      const opened = await connect(at(server));
      const { client } = opened;
      const commands = redisCommands(client);
      const store = redisStore(client, { prefix: `${name}:` });
      let round = 0;
      const request = {
        sessionKey: 'session-1',
        actorId: 'actor-1',
        requestId: '00000000-0000-7000-8000-000000000001',
        paramsDigest: '0'.repeat(64),
      };
      const keyOf = (n: number): string => `sw1:${round}:${String(n).padStart(60, '0')}`;
      const [bare, claim] = [`${name}: SET NX PX`, `${name}: claim`];
      const measured = await sideBySide(
        {
          [bare]: () => {
            round++;
            return pipelined((n) =>
              commands.send(['SET', `${name}:bare:${keyOf(n)}`, 'held', 'NX', 'PX', String(LONG_MS)], undefined),
            );
          },
          [claim]: () =>
            pipelined(async (n) => {
              const { created } = await store.setIfNotExists({
                key: keyOf(n),
                tool: 'search',
                idempotencyKey: 'of the caller',
                request,
                leaseMs: LONG_MS,
                ttlMs: LONG_MS,
              });
              if (!created) throw new Error('a new key was refused');
            }),
        },
        CLAIMS,
        ROUNDS,
      );
      figures.push(...measured.figures);
      ratios[`${name}: claims / bare SET NX, a second`] = measured.ratio(bare, claim);
      await store.close?.();
      await opened.close();
    }
  } finally {
    await server.stop();
  }
  return { question: QUESTION, figures, ratios };
}
