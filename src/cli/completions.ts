import { COMMANDS, optionsOf, type CommandSpec, type OptionSpec } from './commands.ts';
import { COMPLETIONS_HELP, parseCompletions, type Shell } from './arguments/completions.ts';
import { EXIT, type CommandContext } from './context.ts';

/** What stands in a help for the value of an option that is a file. */
const isFile = ({ placeholder }: OptionSpec): boolean => placeholder === 'FILE';
const takesValue = ({ placeholder }: OptionSpec): boolean => placeholder !== undefined;

const TOP: readonly OptionSpec[] = [
  { name: 'help', short: 'h', text: 'what there is' },
  { name: 'version', short: 'v', text: 'the version' },
];

/** The options of a command that are its own to offer; every command has a help. */
const offered = (command: CommandSpec): OptionSpec[] => optionsOf(command).filter(({ name }) => name !== 'version');

const list = (words: readonly string[]): string => words.join(' ');
const dashed = (options: readonly OptionSpec[]): string => list(options.map(({ name }) => `--${name}`));

const bashCase = (command: CommandSpec): string => {
  const { name, words = [], files = false } = command;
  const options = offered(command);
  const valued = options.filter(takesValue);
  const plain = valued.filter((option) => !isFile(option)).map((option) => `--${option.name}`);
  const paths = valued.filter(isFile).map((option) => `--${option.name}`);
  return [
    `    ${name})`,
    ...(paths.length === 0
      ? []
      : [`      case "$previous" in ${paths.join('|')}) _spillway_files "$current"; return ;; esac`]),
    ...(plain.length === 0 ? [] : [`      case "$previous" in ${plain.join('|')}) return ;; esac`]),
    `      case "$current" in -*) COMPREPLY=($(compgen -W '${dashed(options)}' -- "$current")); return ;; esac`,
    ...(words.length === 0
      ? []
      : [`      [ "$place" -eq 2 ] && COMPREPLY=($(compgen -W '${list(words)}' -- "$current"))`]),
    ...(files ? ['      _spillway_files "$current"'] : []),
    '      ;;',
  ].join('\n');
};

const bash = (): string => `# Completions of spillway for bash: source <(spillway completions bash)
_spillway_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
_spillway() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} place=$COMP_CWORD
  COMPREPLY=()
  if [ "$place" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${list(COMMANDS.map(({ name }) => name))} ${dashed(TOP)}' -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${COMMANDS.map(bashCase).join('\n')}
  esac
}
complete -F _spillway spillway
`;

/** A text inside single quotes; in zsh's specifications, brackets and colons mean something. */
const quoted = (text: string): string => text.replaceAll("'", String.raw`'\''`);
const zshText = (text: string): string => quoted(text.replaceAll(/[[\]:\\]/g, String.raw`\$&`));

const zshOption = (option: OptionSpec): string => {
  const { name, short, text, placeholder = '' } = option;
  const value = takesValue(option) ? `:${placeholder.toLowerCase()}:${isFile(option) ? '_files' : ' '}` : '';
  const written = `--${name}${takesValue(option) ? '=' : ''}[${zshText(text)}]${value}`;
  return `'*${written}'${short === undefined ? '' : ` '-${short}[${zshText(text)}]'`}`;
};

const zshCase = (command: CommandSpec): string => {
  const { name, words, files = false } = command;
  const operands = [
    ...(words === undefined ? [] : [`'1:word:(${list(words)})'`]),
    ...(files ? ["'*:file:_files'"] : []),
  ];
  return `    (${name}) _arguments -s ${[...offered(command).map(zshOption), ...operands].join(' ')} ;;`;
};

const zsh = (): string => `#compdef spillway
# Completions of spillway for zsh: source <(spillway completions zsh), after compinit
_spillway() {
  local -a commands
  commands=(
${COMMANDS.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    if [[ $PREFIX == -* ]]; then
      _arguments ${TOP.map(zshOption).join(' ')}
    else
      _describe -t commands command commands
    fi
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${COMMANDS.map(zshCase).join('\n')}
  esac
}
if [ "$funcstack[1]" = _spillway ]; then _spillway "$@"; else compdef _spillway spillway; fi
`;

const fishText = (text: string): string => `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;

const fishOption = (condition: string, option: OptionSpec): string => {
  const { name, short, text } = option;
  const value = takesValue(option) ? ` -x${isFile(option) ? ` -a '(__fish_complete_path)'` : ''}` : '';
  return (
    `complete -c spillway -n ${condition} -l ` +
    `${name}${short === undefined ? '' : ` -s ${short}`}${value} -d ${fishText(text)}`
  );
};

const fishCommand = (command: CommandSpec): string => {
  const { name, summary, words, files = false } = command;
  const within = `'__fish_seen_subcommand_from ${name}'`;
  const first = `'__fish_seen_subcommand_from ${name}; and test (count (commandline -opc)) -eq 2'`;
  return [
    `complete -c spillway -n __fish_use_subcommand -a ${name} -d ${fishText(summary)}`,
    ...(words === undefined ? [] : [`complete -c spillway -n ${first} -a ${fishText(list(words))}`]),
    ...(files ? [`complete -c spillway -n ${within} -F`] : []),
    ...offered(command).map((option) => fishOption(within, option)),
  ].join('\n');
};

const fish = (): string => `# Completions of spillway for fish: spillway completions fish | source
complete -c spillway -f
${TOP.map((option) => fishOption('__fish_use_subcommand', option)).join('\n')}
${COMMANDS.map(fishCommand).join('\n')}
`;

const SCRIPTS: Readonly<Record<Shell, () => string>> = { bash, zsh, fish };

/** What makes a shell complete spillway's commands, options and files. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell]();
}

/**
 * Runs `spillway completions`.
 * @returns the exit code
 * @throws UsageError
 */
export function runCompletions(args: readonly string[], { stdout }: CommandContext): number {
  const shell = parseCompletions(args);
  stdout.write(shell === undefined ? COMPLETIONS_HELP : completionScript(shell));
  return EXIT.fine;
}
