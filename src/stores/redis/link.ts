import type { Runtime } from '../../contract/runtime.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { redisReply, redisThrown } from '../../errors/redis.ts';
import { expireAfter } from '../../operators/timing/expiry.ts';
import type { RedisCommands } from './client.ts';
import type { Script } from './scripts.ts';

/** What is done with an answer that came after the operation had failed. */
export type LateAnswer = (answer: unknown) => void;

/** Commands and scripts with a limit in time, their errors made ours. */
export interface RedisLink {
  /** @param doing what was attempted, for messages */
  command(doing: string, args: string[], key?: string): Promise<unknown>;
  run(
    doing: string,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    late?: LateAnswer,
  ): Promise<unknown>;
}

const unanswered = (doing: string, commandTimeoutMs: number): string =>
  `${doing}: Redis gave no answer within ${commandTimeoutMs / 1000}s; whether the command took place is not known. ` +
  'Check the server, the network and what else the connection is used for';

/**
 * A command is never cancelled: a client that takes one back out of its pipe can hand its answer to the next. At the
 * limit the operation fails, and the answer is dropped when it comes.
 */
export function redisLink(commands: RedisCommands, commandTimeoutMs: number, runtime: Runtime): RedisLink {
  const timers = runtime.background ?? runtime;
  const limited = (doing: string, start: () => Promise<unknown>, late?: LateAnswer): Promise<unknown> =>
    new Promise((resolve, reject) => {
      let over = false;
      const deadline = expireAfter(commandTimeoutMs, timers, () => {
        over = true;
        reject(new ToolExecutionError('store_unavailable', unanswered(doing, commandTimeoutMs), { code: 'ETIMEDOUT' }));
      });
      const answered = (answer: unknown): void => {
        deadline.unsubscribe();
        if (over) late?.(answer);
        else resolve(answer);
      };
      const failed = (thrown: unknown): void => {
        deadline.unsubscribe();
        reject(redisThrown(thrown, doing));
      };
      try {
        start().then(answered, failed);
      } catch (thrown) {
        failed(thrown);
      }
    });

  return {
    command: (doing, args, key) => limited(doing, () => commands.send(args, key)),
    run: (doing, { sha, text }, keys, args, late) => {
      const rest = [String(keys.length), ...keys, ...args];
      const start = async (): Promise<unknown> => {
        try {
          return await commands.send(['EVALSHA', sha, ...rest], keys[0]);
        } catch (thrown) {
          // A restart, a failover and SCRIPT FLUSH forget scripts.
          if (redisReply(thrown) === 'NOSCRIPT') return await commands.send(['EVAL', text, ...rest], keys[0]);
          throw thrown;
        }
      };
      return limited(doing, start, late);
    },
  };
}
