import { ADMIN_ACTIONS, ADMIN_HELP, ADMIN_OPTIONS } from './arguments/admin.ts';
import { APPROVE_HELP, APPROVE_OPTIONS } from './arguments/approve.ts';
import { RUN_HELP, RUN_OPTIONS } from './arguments/run.ts';
import { CHECK_HELP, CHECK_OPTIONS } from './arguments/check.ts';
import { COMMAND_NAMES, type CommandName } from './command-names.ts';
import { COMPLETIONS_HELP, COMPLETIONS_OPTIONS, SHELLS } from './arguments/completions.ts';
import { GATEWAY_HELP, GATEWAY_KINDS, GATEWAY_OPTIONS } from './arguments/gateway.ts';
import { INSPECT_HELP, INSPECT_OPTIONS, REPORT_HELP, REPORT_OPTIONS } from './arguments/inspect.ts';
import {
  ATTACH_HELP,
  ATTACH_OPTIONS,
  FLEET_HELP,
  FLEET_OPTIONS,
  WORKER_HELP,
  WORKER_OPTIONS,
} from './arguments/fleet.ts';
import { INIT_HELP, INIT_OPTIONS } from './arguments/init.ts';
import { MCP_HELP, MCP_OPTIONS } from './arguments/mcp.ts';
import type { Options } from './arguments/options.ts';
import { REPLAY_HELP, REPLAY_OPTIONS } from './arguments/replay.ts';
import { SIMULATE_HELP, SIMULATE_OPTIONS } from './arguments/simulate.ts';
import { SHOW_HELP, SHOW_OPTIONS } from './arguments/show.ts';
import { choices } from './show/text.ts';
import { TOOLS_HELP, TOOLS_OPTIONS } from './arguments/tools.ts';
import { UsageError } from './arguments/usage.ts';

/** A command, as the help and the completions of shells know it. */
export interface CommandSpec {
  readonly name: CommandName;
  /** What it does, in a line. */
  readonly summary: string;
  readonly help: string;
  readonly options: Options;
  /** What its first word can be. */
  readonly words?: readonly string[];
  /** Its words are files. */
  readonly files?: true;
}

/** An option, as its command's help describes it. */
export interface OptionSpec {
  readonly name: string;
  readonly short?: string;
  /** What stands for its value in the help; absent for one that has none. */
  readonly placeholder?: string;
  readonly text: string;
}

const HELP_HELP = `spillway help [COMMAND]

Says what there is, or what a command does. So does --help, after the command.
`;

const SPECS: Readonly<Record<CommandName, Omit<CommandSpec, 'name'>>> = {
  run: { summary: 'run a turn of tool calls over MCP servers', help: RUN_HELP, options: RUN_OPTIONS, files: true },
  check: {
    summary: 'say all that is wrong with plans and manifests; starts nothing',
    help: CHECK_HELP,
    options: CHECK_OPTIONS,
    files: true,
  },
  tools: {
    summary: 'list what the servers of a plan have, with effects and schemas',
    help: TOOLS_HELP,
    options: TOOLS_OPTIONS,
    files: true,
  },
  show: { summary: 'show a trace: table, diagram, sentence', help: SHOW_HELP, options: SHOW_OPTIONS, files: true },
  inspect: {
    summary: 'show a trace as a page, live while it grows',
    help: INSPECT_HELP,
    options: INSPECT_OPTIONS,
    files: true,
  },
  report: { summary: 'write a trace as one file of HTML', help: REPORT_HELP, options: REPORT_OPTIONS, files: true },
  replay: {
    summary: 'say what another policy would have made of a trace',
    help: REPLAY_HELP,
    options: REPLAY_OPTIONS,
    files: true,
  },
  simulate: {
    summary: 'see policies in a storm before they are in one',
    help: SIMULATE_HELP,
    options: SIMULATE_OPTIONS,
    files: true,
  },
  worker: {
    summary: 'serve the tools of a plan to a fleet',
    help: WORKER_HELP,
    options: WORKER_OPTIONS,
    files: true,
  },
  attach: { summary: 'show a turn of a fleet, from anywhere', help: ATTACH_HELP, options: ATTACH_OPTIONS },
  fleet: { summary: 'tell how a fleet stands', help: FLEET_HELP, options: FLEET_OPTIONS },
  init: {
    summary: 'write a plan with the servers of an mcp.json',
    help: INIT_HELP,
    options: INIT_OPTIONS,
    files: true,
  },
  gateway: {
    summary: 'serve tools to Claude clients',
    help: GATEWAY_HELP,
    options: GATEWAY_OPTIONS,
    words: GATEWAY_KINDS,
  },
  mcp: {
    summary: 'stand in front of any MCP server',
    help: MCP_HELP,
    options: MCP_OPTIONS,
    words: ['login'],
  },
  admin: {
    summary: 'ask a running program, or order it about',
    help: ADMIN_HELP,
    options: ADMIN_OPTIONS,
    words: Object.keys(ADMIN_ACTIONS),
  },
  approve: {
    summary: 'list the calls that wait for a person, or answer one',
    help: APPROVE_HELP,
    options: APPROVE_OPTIONS,
  },
  completions: {
    summary: 'complete all of this in bash, zsh or fish',
    help: COMPLETIONS_HELP,
    options: COMPLETIONS_OPTIONS,
    words: SHELLS,
  },
  help: { summary: 'say what a command does', help: HELP_HELP, options: {}, words: COMMAND_NAMES },
};

export const COMMANDS: readonly CommandSpec[] = COMMAND_NAMES.map((name) => ({ name, ...SPECS[name] }));

const LINE = /^ {2}--([\w-]+)(?: ([A-Z]+))? {2,}(.*)$/gm;

/** The options of a command, with what its help says of each: the help is the one place where they are described. */
export function optionsOf({ help, options }: CommandSpec): OptionSpec[] {
  const described = new Map(
    [...help.matchAll(LINE)].map(([, name = '', placeholder, text = '']) => [name, { placeholder, text }]),
  );
  return Object.entries(options).map(([name, { short }]) => {
    const { placeholder, text = '' } = described.get(name) ?? {};
    return {
      name,
      text,
      ...(short === undefined ? {} : { short }),
      ...(placeholder === undefined ? {} : { placeholder }),
    };
  });
}

/** How a command is written: the first line of its help, up to its options. */
const synopsis = ({ help }: CommandSpec): string => (help.split('\n')[0] ?? '').replace(/ (?:\[options\]|--).*/, '');

const wrapped = (words: readonly string[], indent: string): string => {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || indent.length + last.length + 1 + word.length > 98) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => `${indent}${line}`).join('\n');
};

const entry = (spec: CommandSpec): string => {
  const options = optionsOf(spec).filter(({ name }) => name !== 'help' && name !== 'version');
  const written = options.map(
    ({ name, placeholder }) => `[--${name}${placeholder === undefined ? '' : ` ${placeholder}`}]`,
  );
  const head = `  ${synopsis(spec).padEnd(30)}  ${spec.summary}`;
  return written.length === 0 ? head : `${head}\n${wrapped(written, '      ')}`;
};

/** What `spillway --help` says: every command, with all of its options. */
export const HELP: string = `spillway COMMAND [options]

Retries, circuit breakers, hard timeouts and turns that keep what completed, for the tool calls of agents.

${COMMANDS.map(entry).join('\n\n')}

  spillway --version              the version
  spillway COMMAND --help         what a command does, its options one by one, and its exit codes

Exit codes: 0 done, 1 failed, 2 usage or bad file (nothing was called), 130 interrupted; run has 3, too.
A plan starts servers, which are programs: run only plans whose commands you would run yourself.
`;

/**
 * What `spillway help` says of a command, or of all.
 * @throws UsageError
 */
export function helpOf([name, ...rest]: readonly string[]): string {
  if (name === undefined || name === '--help' || name === '-h') return HELP;
  const spec = COMMANDS.find((command) => command.name === name);
  if (spec === undefined)
    throw new UsageError(`there is no command ${JSON.stringify(name.slice(0, 64))}; ${choices(name, COMMAND_NAMES)}`);
  if (rest.length > 0) throw new UsageError(`help takes one command; leave out ${JSON.stringify(rest[0])}`);
  return spec.help;
}

/** Which commands have an option that another one has not; nothing where none has. */
export function whoHas(option: string): string | undefined {
  const owners = COMMANDS.filter(({ options }) => Object.hasOwn(options, option.replace(/^--?/, ''))).map(
    ({ name }) => name,
  );
  return owners.length === 0 ? undefined : `${option} is an option of spillway ${owners.join(', ')}`;
}
