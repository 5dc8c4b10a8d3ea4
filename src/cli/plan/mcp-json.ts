import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import { readYaml } from '../../formats/yaml.ts';
import { plain } from '../show/text.ts';

/** The servers of an mcp.json, as a plan file has them. */
export interface FoundServers {
  readonly servers: Readonly<Record<string, ServerEntry>>;
  /** What could not be taken over, and why, a sentence each. No value of env or headers is in it. */
  readonly leftOut: readonly string[];
}

type Entry = Readonly<Record<string, unknown>>;

const MAX_LENGTH = 1_048_576;

const isEntry = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Editors keep comments in their JSON. Blanked, so that places stay what they are. */
const withoutComments = (text: string): string =>
  text.replaceAll(/"(?:\\[^\n]|[^"\\\n])*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (match) =>
    match.startsWith('"') ? match : match.replaceAll(/[^\n]/g, ' '),
  );

const textsOf = (value: unknown): Record<string, string> =>
  isEntry(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, item]) =>
          ['string', 'number', 'boolean'].includes(typeof item) ? [[key, String(item)]] : [],
        ),
      )
    : {};

/** What editors fill in and a plan does not: `${input:token}`, `${env:TOKEN}`. */
const isFilledIn = (value: string): boolean => value.includes('${');

/** Texts that a plan can take as they are; of the others, only the names are shown. */
const taken = (name: string, of: string, value: unknown, leftOut: string[]): Record<string, string> | undefined => {
  const all = Object.entries(textsOf(value));
  for (const [key, text] of all)
    if (isFilledIn(text))
      leftOut.push(`${name}: ${of} ${plain(key)} is filled in by your editor, and not here: write its value`);
  const kept = all.filter(([, text]) => !isFilledIn(text));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
};

const serverOf = (name: string, entry: Entry, leftOut: string[]): ServerEntry | undefined => {
  const { command, args, env, cwd, url, serverUrl, httpUrl, headers, type, disabled } = entry;
  const address = [url, httpUrl, serverUrl].find((one) => typeof one === 'string');
  const refuse = (why: string): undefined => void leftOut.push(`${name}: ${why}`);
  if (disabled === true) return refuse('is disabled there');
  if (type === 'sse') return refuse('speaks SSE, which MCP has given up; ask it for Streamable HTTP');
  if (typeof command === 'string' && command !== '') {
    const words = Array.isArray(args) ? args.filter((word) => typeof word === 'string') : [];
    const variables = taken(name, 'env', env, leftOut);
    const folder = typeof cwd === 'string' && cwd !== '' && !isFilledIn(cwd) ? { cwd } : {};
    if ([command, ...words].some(isFilledIn))
      leftOut.push(`${name}: its command or args hold \${...}, which is not filled in here`);
    return {
      command,
      ...(words.length === 0 ? {} : { args: words }),
      ...(variables === undefined ? {} : { env: variables }),
      ...folder,
    };
  }
  if (address === undefined) return refuse('has neither a command nor a url');
  if (!/^https?:\/\//.test(address) || !URL.canParse(address) || isFilledIn(address))
    return refuse('its url is none that a plan can use');
  const { username, password } = new URL(address);
  if (username !== '' || password !== '') return refuse('its url holds a user name or a password; put them in headers');
  const sent = taken(name, 'header', headers, leftOut);
  return { url: address, ...(sent === undefined ? {} : { headers: sent }) };
};

/** A name as a plan has it, and one that no other server has. */
const planName = (name: string, used: ReadonlySet<string>): string => {
  const base =
    name
      .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 56) || 'server';
  let candidate = base;
  for (let number = 2; used.has(candidate); number++) candidate = `${base}-${number}`;
  return candidate;
};

/**
 * Reads the servers of an mcp.json: `mcpServers` (Claude, Cursor, Windsurf) or `servers` (VS Code), comments allowed.
 * @returns a message, with line and column in front, when there is nothing to be had from it
 */
export function readMcpJson(text: string): FoundServers | string {
  const yaml = readYaml(withoutComments(text), { name: 'file of servers', aliases: false, maxLength: MAX_LENGTH });
  const [problem] = yaml.problems;
  if (problem !== undefined) {
    const { line, column } = yaml.positionOf(problem);
    return `${line}:${column}: ${problem.message}`;
  }
  const { mcpServers, servers } = isEntry(yaml.value) ? yaml.value : {};
  const listed = [mcpServers, servers].find(isEntry);
  if (listed === undefined) return '1:1: has no mcpServers and no servers';
  const leftOut: string[] = [];
  const found: Record<string, ServerEntry> = {};
  for (const [name, entry] of Object.entries(listed)) {
    const shown = plain(name).slice(0, 64);
    const server = isEntry(entry) ? serverOf(shown, entry, leftOut) : undefined;
    if (!isEntry(entry)) leftOut.push(`${shown}: is no mapping`);
    if (server === undefined) continue;
    const own = planName(name, new Set(Object.keys(found)));
    if (own !== name) leftOut.push(`${shown}: is called ${own} in the plan`);
    found[own] = server;
  }
  return Object.keys(found).length === 0
    ? `1:1: has no server that a plan can use${leftOut.length === 0 ? '' : ` (${leftOut.join('; ')})`}`
    : { servers: found, leftOut };
}
