import { readFile } from 'node:fs/promises';
import type { Effects } from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { AnyTool } from '../contract/tool.ts';
import { deeply, withoutSecrets } from '../policy/redact/known.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { EXIT, type CommandContext } from './context.ts';
import { isManifest } from './plan/file-kind.ts';
import { loadPlan, type LoadedPlan } from './plan/file.ts';
import { until } from './run.ts';
import { secretsOf } from './plan/secrets.ts';
import { startServers } from './plan/servers.ts';
import { table } from './show/table.ts';
import { styleOf, type Style } from './show/terminal.ts';
import { choices, fit, messageLine, plain, shownName } from './show/text.ts';
import { TOOLS_HELP, parseTools, type ToolsCommand } from './arguments/tools.ts';
import { UsageError } from './arguments/usage.ts';

/** A tool, as its server lists it and the plan treats it. */
interface ShownTool {
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  /** What nodes of the plan call it: the ids of its entries, and always `server.tool`. */
  readonly names: readonly string[];
  readonly effects: Effects;
  readonly description?: string;
  readonly inputSchema?: InputSchema;
}

interface Listing {
  readonly tools: readonly ShownTool[];
  /** What a server lists and spillway does not take, and why. */
  readonly notes: readonly string[];
}

type InputSchema = Readonly<Record<string, unknown>>;

const shownTool = (server: string, tool: AnyTool, names: readonly string[], shown = withoutSecrets([])): ShownTool => ({
  server,
  tool: tool.name.startsWith(`${server}.`) ? tool.name.slice(server.length + 1) : tool.name,
  names: [...names, tool.name],
  effects: tool.policy?.effects ?? 'mutating',
  ...(tool.description === undefined ? {} : { description: shown(tool.description) }),
  // A default or a description in it is a server's own text, too.
  ...(tool.inputJsonSchema === undefined ? {} : { inputSchema: deeply(tool.inputJsonSchema, shown) as InputSchema }),
});

/** A provider over MCP says what it left out, and what it cannot check. */
interface Telling {
  readonly leftOut?: ReadonlyArray<{ readonly toolName: string; readonly reason: string }>;
  readonly unchecked?: ReadonlyArray<{ readonly toolName: string; readonly reason: string }>;
}

const notesOf = ({ leftOut = [], unchecked = [] }: Telling): string[] => [
  ...leftOut.map(({ toolName, reason }) => `${toolName} is left out: ${reason}`),
  ...unchecked.map(({ toolName, reason }) => `the input of ${toolName} is not checked: ${reason}`),
];

const ofPlan = async (
  loaded: LoadedPlan,
  { servers: wanted }: ToolsCommand,
  { runtime, signal }: CommandContext,
): Promise<Listing> => {
  const { servers: known = {}, tools: entries = [] } = loaded.file;
  const names = wanted.length === 0 ? Object.keys(known) : wanted;
  for (const name of names)
    if (!Object.hasOwn(known, name))
      throw new UsageError(
        `there is no server ${JSON.stringify(name)} in the plan; ${choices(name, Object.keys(known))}`,
      );
  const starting = startServers(names, loaded, runtime);
  const { providers, close } = await until(starting, signal, 'interrupted; nothing was called');
  const shown = withoutSecrets(secretsOf(known));
  try {
    const tools = [...providers].flatMap(([server, provider]) =>
      provider.tools.map((tool) => {
        const own = entries.filter((entry) => entry.server === server && `${server}.${entry.tool}` === tool.name);
        const effects = own.find((entry) => entry.effects !== undefined)?.effects;
        const treated = effects === undefined ? tool : { ...tool, policy: { ...tool.policy, effects } };
        return shownTool(
          server,
          treated,
          own.map(({ id }) => id),
          shown,
        );
      }),
    );
    return { tools, notes: [...providers.values()].flatMap((provider) => notesOf(provider as ToolProvider & Telling)) };
  } finally {
    await close();
  }
};

const ofManifest = async (
  path: string,
  text: string,
  { allow }: ToolsCommand,
  { env, runtime }: CommandContext,
): Promise<Listing> => {
  const { examineManifest } = await import('../providers/rest/manifest.ts');
  const { readRestManifest, restProvider } = await import('../providers/rest.ts');
  // Nothing is sent, so no secret is needed: one that is not set is none.
  const unset = Object.fromEntries(examineManifest(text).variables.map((name) => [name, env[name] ?? 'unset']));
  try {
    const provider = restProvider(readRestManifest(text), { env: unset, allow, runtime });
    return { tools: provider.tools.map((tool) => shownTool(provider.name, tool, [])), notes: [] };
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${path}: ${plain(error.message)}`, { cause: error });
    throw error;
  }
};

const typeOf = (schema: unknown): string => {
  const {
    type,
    enum: values,
    anyOf,
  } = (typeof schema === 'object' && schema !== null ? schema : {}) as {
    readonly type?: unknown;
    readonly enum?: unknown;
    readonly anyOf?: unknown;
  };
  if (Array.isArray(values))
    return values
      .slice(0, 6)
      .map((value) => JSON.stringify(value))
      .join('|');
  if (typeof type === 'string') return type;
  return Array.isArray(type) || Array.isArray(anyOf) ? 'several' : 'any';
};

/** What a tool takes, in a line: `city: string, days?: integer`. */
const inputText = ({ inputSchema = {} }: ShownTool): string => {
  const { properties, required } = inputSchema;
  if (typeof properties !== 'object' || properties === null) return '';
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties)
    .map(([name, schema]) => `${shownName(name)}${needed.includes(name) ? '' : '?'}: ${typeOf(schema)}`)
    .join(', ');
};

const shownNames = ({ tool, names }: ShownTool): string =>
  names.length === 1 ? tool : `${tool} (${names.slice(0, -1).join(', ')})`;

/** The tools of a server: a line of facts each, and what it says of itself. */
const serverLines = (server: string, tools: readonly ShownTool[], { columns, glyphs, paint }: Style): string[] => {
  const rows = tools.map((shown) => [shownNames(shown), shown.effects, inputText(shown)]);
  const painted = (row: number, _: number, text: string): string => (row === -1 ? paint('quiet', text) : text);
  const [head = '', ...lines] = table(['tool', 'effects', 'input'], rows, {
    columns: columns - 2,
    ellipsis: glyphs.ellipsis,
    paint: painted,
  });
  const described = lines.flatMap((line, index) => {
    const text = fit(plain(tools[index]?.description ?? ''), columns - 6, glyphs.ellipsis);
    return [`  ${line}`, ...(text === '' ? [] : [`      ${paint('quiet', text)}`])];
  });
  return [
    paint('strong', `${shownName(server)}: ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`),
    `  ${head}`,
    ...described,
  ];
};

const report = ({ tools, notes }: Listing, style: Style): string => {
  const servers = [...new Set(tools.map(({ server }) => server))];
  const parts = servers.map((server) =>
    serverLines(
      server,
      tools.filter((shown) => shown.server === server),
      style,
    ).join('\n'),
  );
  const told = notes.map((note) => messageLine(`note: ${note}`));
  const tables = parts.length === 0 ? ['no tools'] : parts;
  const noted = told.length === 0 ? [] : [told.join('\n')];
  return `${[...tables, ...noted].join('\n\n')}\n`;
};

/**
 * Runs `spillway tools`: what the servers of a plan list. No tool is called.
 * @returns the exit code
 * @throws UsageError, PlanFileError or Interrupted
 */
export async function runTools(args: readonly string[], context: CommandContext): Promise<number> {
  const { stdout, stderr } = context;
  const command = parseTools(args);
  if (command === undefined) {
    stdout.write(TOOLS_HELP);
    return EXIT.fine;
  }
  const text = await readFile(command.path, 'utf8').catch(() => '');
  const listing = isManifest(text)
    ? await ofManifest(command.path, text, command, context)
    : await ofPlan(await loadPlan(command.path), command, context);
  if (!command.json) {
    stdout.write(report(listing, styleOf(stdout, command)));
    return EXIT.fine;
  }
  for (const shown of listing.tools) stdout.write(ndjsonLine(shown));
  for (const note of listing.notes) stderr.write(`${messageLine(`note: ${note}`)}\n`);
  return EXIT.fine;
}
