import { parseArgs, type ParseArgsConfig } from 'node:util';
import { choices } from '../show/text.ts';
import { UsageError } from './usage.ts';

/** The options of a command, as `parseArgs` takes them. */
export type Options = NonNullable<ParseArgsConfig['options']>;

/**
 * Options and words of a command's line.
 * @throws UsageError that names the option, and the ones there are
 */
export function parseOptions<const Given extends Options>(
  args: readonly string[],
  options: Given,
): ReturnType<typeof parseArgs<{ options: Given; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const { message } = error as Error;
    const [, option] = /^Unknown option '(--?[^']*)'/.exec(message) ?? [];
    // No cause, and only a message about an option's name: others may hold what was given as a token.
    if (option === undefined) throw new UsageError(message);
    const known = Object.keys(options).map((name) => `--${name}`);
    throw new UsageError(`there is no option ${option}; ${choices(option, known)}`, { option });
  }
}

/**
 * The one file that a command takes.
 * @throws UsageError
 */
export function oneFile(command: string, what: string, [file, ...rest]: readonly string[]): string {
  if (file === undefined || file === '') throw new UsageError(`the ${what} is missing; write spillway ${command}`);
  const [name] = command.split(' ');
  if (rest.length > 0)
    throw new UsageError(`${name} takes one ${what}, not ${rest.length + 1}; leave out ${JSON.stringify(rest[0])}`);
  return file;
}
