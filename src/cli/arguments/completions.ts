import { parseOptions } from './options.ts';
import { choices } from '../show/text.ts';
import { UsageError } from './usage.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export const COMPLETIONS_HELP: string = `spillway completions SHELL

Prints what makes a shell complete commands, options and files of spillway.

  bash            source <(spillway completions bash)           in ~/.bashrc
  zsh             source <(spillway completions zsh)            in ~/.zshrc, after compinit
  fish            spillway completions fish | source            in ~/.config/fish/config.fish

  --help          this text

Exit codes: 0 printed, 2 usage.
`;

export const COMPLETIONS_OPTIONS = { help: { type: 'boolean', short: 'h', default: false } } as const;

/**
 * Reads what follows `spillway completions`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseCompletions(args: readonly string[]): Shell | undefined {
  const { values, positionals } = parseOptions(args, COMPLETIONS_OPTIONS);
  if (values.help) return undefined;
  const [name, ...rest] = positionals;
  if (name === undefined) throw new UsageError(`the shell is missing; there is ${SHELLS.join(', ')}`);
  const shell = SHELLS.find((known) => known === name);
  if (shell === undefined)
    throw new UsageError(`there are no completions for ${JSON.stringify(name.slice(0, 64))}; ${choices(name, SHELLS)}`);
  if (rest.length > 0) throw new UsageError(`completions takes one shell; leave out ${JSON.stringify(rest[0])}`);
  return shell;
}
