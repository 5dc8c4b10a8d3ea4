import { parseArgs, type ParseArgsConfig } from 'node:util';
import { UsageError } from './arguments.ts';
import { choices } from './text.ts';

/**
 * Options and words of a command's line.
 * @throws UsageError that names the option, and the ones there are
 */
export function parseOptions<const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: Options,
): ReturnType<typeof parseArgs<{ options: Options; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const { message } = error as Error;
    const [, option] = /^Unknown option '(--?[^']*)'/.exec(message) ?? [];
    // No cause, and only a message about an option's name: others may hold what was given as a token.
    throw new UsageError(option === undefined ? message : `there is no option ${option}; ${choices(option, Object.keys(options).map((name) => `--${name}`))}`);
  }
}
