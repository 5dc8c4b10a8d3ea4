import path from 'node:path';
import { mcpFileSchema, type GuardEntry, type McpFile } from '../../contract/formats/mcp-file.ts';
import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import { readYaml, type Problem } from '../../formats/yaml.ts';
import { breakerOf, camelKeys, retryOf } from '../../policy/entry.ts';
import { secretsIn, secretsInWords } from '../../policy/redact/named.ts';
import type { McpProxyOptions, ProxiedServer, ProxiedToolPolicy } from '../../mcp-proxy/proxy.ts';
import type { ServerPlace } from '../../mcp-proxy/launch.ts';
import type { McpCommand } from '../arguments/mcp.ts';
import { anyNeedsApproval, type GatesAsked } from '../store/gates.ts';
import { UsageError } from '../arguments/usage.ts';
import { readText, refusal, type PlanFileError } from '../plan/file.ts';
import { remoteAt, remoteOf } from '../plan/remote.ts';
import { launchOf } from '../plan/servers.ts';
import { joined, secretsOf } from '../plan/secrets.ts';
import { choices } from '../show/text.ts';
import { wordedProblems } from '../show/wording.ts';

/** Which servers the proxy has, and how their tools are guarded. */
export interface Configured {
  readonly proxy: Pick<McpProxyOptions, 'servers' | 'profile' | 'defaults'> &
    Required<Pick<McpProxyOptions, 'secrets'>>;
  /** What has to let calls pass. */
  readonly gates: Pick<GatesAsked, 'needsApproval' | 'budget'>;
}

interface LoadedFile {
  readonly file: McpFile;
  readonly folder: string;
  readonly refuse: (problems: readonly Problem[]) => PlanFileError;
}

const load = async (configPath: string): Promise<LoadedFile> => {
  const yaml = readYaml(await readText(configPath), { name: 'file' });
  const refuse = (problems: readonly Problem[]): PlanFileError => refusal(configPath, yaml, problems);
  if (yaml.problems.length > 0) throw refuse(yaml.problems);
  const parsed = mcpFileSchema.safeParse(yaml.value ?? {});
  if (!parsed.success) throw refuse(wordedProblems(parsed.error, yaml.value, mcpFileSchema));
  return { file: parsed.data, folder: path.dirname(path.resolve(configPath)), refuse };
};

/** How a tool is guarded, as its entry says. */
export const policyOf = ({ retry_policy, circuit_breaker, ...entry }: GuardEntry): ProxiedToolPolicy => ({
  ...camelKeys(entry),
  ...(retry_policy === undefined ? {} : { retry: retryOf(retry_policy) }),
  ...(circuit_breaker === undefined ? {} : { breaker: circuit_breaker === false ? false : breakerOf(circuit_breaker) }),
});

const placeOf = async (entry: ServerEntry, name: string, loaded: LoadedFile): Promise<ServerPlace> => {
  const { url, command = '' } = entry;
  if (url === undefined) return launchOf({ ...entry, command }, loaded.folder);
  const remote = await remoteOf(entry, ['servers', name]);
  if ('message' in remote) throw loaded.refuse([remote]);
  return { url, ...remote };
};

/** A client gives what the server needs to whom it starts, and that is us: all of it goes on, but our own secrets. */
const passedOn = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('SPILLWAY_') ? [] : [[name, value]],
    ),
  );

const started = ([command, ...args]: readonly [string, ...string[]]): ServerPlace => {
  const env = passedOn(process.env);
  return { command, args, env, cwd: process.cwd() };
};

const ofLine = async (line: string): Promise<ServerPlace> => {
  if (URL.canParse(line) && /^https?:/.test(line)) return { url: line, ...(await remoteAt(line)) };
  const [command = '', ...args] = line.split(/\s+/);
  return started([command, ...args]);
};

/** Which tool of which server a name in the file stands for. */
export const targetOf = (
  name: string,
  servers: readonly string[],
): readonly [server: string, tool: string] | undefined => {
  const owner = servers.find((server) => name.startsWith(`${server}.`));
  if (owner !== undefined) return [owner, name.slice(owner.length + 1)];
  const [only] = servers;
  return servers.length === 1 && only !== undefined ? [only, name] : undefined;
};

export const withoutServer = (name: string, servers: readonly string[]): Problem => ({
  message: `names no server; ${choices(name.split('.')[0] ?? '', servers)} A tool is SERVER.TOOL`,
  at: ['tools', name],
  atKey: true,
});

/** The policies of a file, by server and by tool. */
const policiesOf = (
  loaded: LoadedFile | undefined,
  servers: readonly string[],
): ReadonlyMap<string, Readonly<Record<string, ProxiedToolPolicy>>> => {
  const policies = new Map<string, Record<string, ProxiedToolPolicy>>();
  for (const [name, entry] of Object.entries(loaded?.file.tools ?? {})) {
    const target = targetOf(name, servers);
    if (target === undefined) {
      const problem = withoutServer(name, servers);
      throw loaded?.refuse([problem]) ?? new UsageError(problem.message);
    }
    const [server, tool] = target;
    policies.set(server, { ...policies.get(server), [tool]: policyOf(entry) });
  }
  return policies;
};

/** What servers are given as secrets, by the file or by whoever started this. */
const secretsOfAll = (
  entries: Readonly<Record<string, ServerEntry>>,
  places: ReadonlyArray<{ readonly place: ServerPlace }>,
): readonly string[] => {
  const passed = places.map(({ place }) =>
    'url' in place ? secretsInWords([place.url]) : [...secretsInWords(place.args), ...secretsIn(place.env)],
  );
  return joined(secretsOf(entries), ...passed);
};

/**
 * What the command line and its file say together.
 * @throws UsageError, PlanFileError
 */
export async function configured(command: McpCommand): Promise<Configured> {
  const loaded = command.configPath === undefined ? undefined : await load(command.configPath);
  const { servers: entries = {}, tools = {}, defaults, profile, budget } = loaded?.file ?? {};
  const places = new Map<string, { readonly place: ServerPlace; readonly startTimeoutMs?: number }>();
  for (const [name, entry] of Object.entries(entries)) {
    if (loaded === undefined) break;
    const { start_timeout_ms } = entry;
    const limit = start_timeout_ms === undefined ? {} : { startTimeoutMs: start_timeout_ms };
    places.set(name, { place: await placeOf(entry, name, loaded), ...limit });
  }
  const add = (name: string, place: ServerPlace): void => {
    if (places.has(name)) throw new UsageError(`there are two servers ${name}; give one of them another name`);
    places.set(name, { place });
  };
  for (const [name, line] of Object.entries(command.servers)) add(name, await ofLine(line));
  if (command.command !== undefined) add(command.name, started(command.command));
  if (places.size === 0)
    throw new UsageError('there is no server; name some under servers: in the file, or one after --');
  const policies = policiesOf(loaded, [...places.keys()]);
  const servers = Object.fromEntries(
    [...places].map(([name, place]): [string, ProxiedServer] => {
      const tools = policies.get(name);
      return [name, { ...place, ...(tools === undefined ? {} : { tools }) }];
    }),
  );
  const { timeoutMs } = command;
  return {
    proxy: {
      servers,
      secrets: secretsOfAll(entries, [...places.values()]),
      ...(profile === undefined ? {} : { profile }),
      defaults: {
        ...(defaults === undefined ? {} : policyOf(defaults)),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      },
    },
    gates: { needsApproval: anyNeedsApproval([defaults ?? {}, ...Object.values(tools)]), budget },
  };
}
