/** Every command, in the order of the help. */
export const COMMAND_NAMES = [
  'run',
  'check',
  'tools',
  'show',
  'inspect',
  'report',
  'replay',
  'simulate',
  'worker',
  'attach',
  'fleet',
  'init',
  'gateway',
  'mcp',
  'admin',
  'approve',
  'completions',
  'help',
] as const;

export type CommandName = (typeof COMMAND_NAMES)[number];

export const isCommandName = (text: string | undefined): text is CommandName =>
  COMMAND_NAMES.includes(text as CommandName);
