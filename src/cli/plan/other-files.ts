import path from 'node:path';
import { mcpFileSchema, type McpFile } from '../../contract/formats/mcp-file.ts';
import { policyFileSchema } from '../../contract/formats/policy-file.ts';
import { scenarioFileSchema } from '../../contract/formats/scenario-file.ts';
import type { Problem, YamlFile } from '../../formats/yaml.ts';
import { policyOf, targetOf, withoutServer } from '../mcp/servers.ts';
import { wordedProblems } from '../show/wording.ts';
import { placeName } from './file.ts';
import { count, type FileReport } from './file-report.ts';
import { checkServers } from './machine.ts';
import { checkPolicies, type PlacedPolicy } from './policies.ts';

/** A file that has been read, whatever is wrong with it. */
export interface ReadFile {
  readonly file: string;
  readonly yaml: YamlFile;
}

const found = (yaml: YamlFile, problems: readonly Problem[]): FileReport['problems'] =>
  problems.map((problem) => ({ ...yaml.positionOf(problem), at: placeName(problem), message: problem.message }));

/** A name without a server, where the file has some: those of a client's own command line are not known here. */
const unplaced = ({ servers = {}, tools = {} }: McpFile): Problem[] => {
  const names = Object.keys(servers);
  return names.length === 0
    ? []
    : Object.keys(tools).flatMap((name) => (targetOf(name, names) === undefined ? [withoutServer(name, names)] : []));
};

/** What is wrong with a file for `spillway mcp --config`. */
export const proxyReport = async ({ file, yaml }: ReadFile): Promise<FileReport> => {
  const { data, error } = mcpFileSchema.safeParse(yaml.value);
  if (data === undefined)
    return {
      file,
      kind: 'proxy',
      problems: found(yaml, wordedProblems(error, yaml.value, mcpFileSchema)),
      warnings: [],
    };
  const { servers = {}, tools = {}, defaults = {}, profile } = data;
  const placed = Object.entries({ ...tools }).map(([name, { check_input: _, ...entry }]): PlacedPolicy => {
    return { name, policy: policyOf({ ...defaults, ...entry }), at: ['tools', name] };
  });
  const fromPolicies = checkPolicies(
    [...placed, { name: 'defaults', policy: policyOf(defaults), at: ['defaults'] }],
    profile,
  );
  const fromServers = await checkServers(servers, path.dirname(path.resolve(file)));
  return {
    file,
    kind: 'proxy',
    problems: found(yaml, [...unplaced(data), ...fromPolicies.problems, ...fromServers.problems]),
    warnings: [...fromPolicies.warnings, ...fromServers.warnings],
    holds:
      `${count(Object.keys(servers).length, 'server')} and the policies of ` +
      `${count(Object.keys(tools).length, 'tool')}, for spillway mcp`,
  };
};

/** What is wrong with a file for `--policy` of `spillway replay` and `spillway simulate`. */
export const policyReport = async ({ file, yaml }: ReadFile): Promise<FileReport> => {
  const { toolPolicyOf } = await import('../../simulate/policy-file.ts');
  const { data, error } = policyFileSchema.safeParse(yaml.value);
  const placed = ({ tools = {}, defaults = {} }: NonNullable<typeof data>): PlacedPolicy[] => [
    ...Object.entries(tools).map(([name, entry]): PlacedPolicy => {
      return { name, policy: toolPolicyOf({ ...defaults, ...entry }), at: ['tools', name] };
    }),
    { name: 'defaults', policy: toolPolicyOf(defaults), at: ['defaults'] },
  ];
  const { problems, warnings } =
    data === undefined
      ? { problems: wordedProblems(error, yaml.value, policyFileSchema), warnings: [] }
      : checkPolicies(placed(data));
  const tools = count(Object.keys(data?.tools ?? {}).length, 'tool');
  return {
    file,
    kind: 'policy',
    problems: found(yaml, problems),
    warnings,
    holds: `the policies of ${tools}, for spillway replay and spillway simulate`,
  };
};

/** What is wrong with a scenario of `spillway simulate`: its shape, or else the first thing that it names wrongly. */
export const scenarioReport = async ({ file, yaml }: ReadFile): Promise<FileReport> => {
  const { checkScenario } = await import('../../simulate/storm/scenario/check.ts');
  const { SimulationInputError } = await import('../../simulate/policy-file.ts');
  const report = { file, kind: 'scenario', warnings: [] } as const;
  const { data, error } = scenarioFileSchema.safeParse(yaml.value);
  if (data === undefined)
    return { ...report, problems: found(yaml, wordedProblems(error, yaml.value, scenarioFileSchema)) };
  try {
    checkScenario(data);
  } catch (error) {
    if (!(error instanceof SimulationInputError)) throw error;
    return { ...report, problems: [{ message: `${file}: ${error.message}` }] };
  }
  const { servers, tools, clients } = data;
  const holds =
    `${count(Object.keys(servers).length, 'server')}, ${count(Object.keys(tools).length, 'tool')} and ` +
    `${count(clients.length, 'kind')} of clients, for spillway simulate`;
  return { ...report, problems: [], holds };
};
