import type { ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import { scenarioFileSchema } from '../../contract/formats/scenario-file.ts';
import { SimulationInputError, readYamlAs } from '../policy-file.ts';

/**
 * Reads a scenario file.
 * @param what the file's name, for messages
 * @throws SimulationInputError that names the line and column, or what refers to nothing
 */
export function readScenarioFile(text: string, what: string): ScenarioFile {
  const scenario = readYamlAs(scenarioFileSchema, text, what, 'scenario');
  checkScenario(scenario);
  return scenario;
}

const refuse = (message: string): never => {
  throw new SimulationInputError(message);
};

const names = (of: Readonly<Record<string, unknown>> | undefined): string => Object.keys(of ?? {}).join(', ') || 'none';

/** More calls than a process has memory for: each is kept until the end. */
const CALLS_MAX = 10_000_000;
/** More buckets than a chart has points for. */
const BUCKETS_MAX = 1_000_000;

const refuseSize = (calls: string): never =>
  refuse(`${calls}, and ${CALLS_MAX} calls are the most that a run takes; ask for fewer, or for a shorter time`);

/** How many calls open clients make, about. */
const callsOf = (entry: ScenarioFile['clients'][number], durationS: number): number => {
  if ('poisson' in entry) return entry.poisson.rate_per_s * durationS;
  if ('burst' in entry) return entry.burst.count * Math.max(1, durationS / (entry.burst.every_s ?? Infinity));
  return entry.closed.users;
};

/** Whether a run of it ends. */
const checkSize = ({ duration_s, bucket_ms = 1_000, clients }: ScenarioFile): void => {
  for (const [index, entry] of clients.entries()) {
    const calls = callsOf(entry, duration_s);
    if (calls > CALLS_MAX) refuseSize(`clients.${index} make some ${calls.toPrecision(3)} calls`);
  }
  if ((duration_s * 1_000) / bucket_ms > BUCKETS_MAX)
    refuse(`bucket_ms: more than ${BUCKETS_MAX} buckets in ${duration_s} s; take longer ones`);
};

/** @throws SimulationInputError when clients have made more calls than a run takes */
export const checkCalls = (calls: number): void => {
  if (calls > CALLS_MAX) refuseSize(`clients have made ${calls} calls and would make more`);
};

/** Whether all that a scenario names is there. @throws SimulationInputError */
export function checkScenario(scenario: ScenarioFile): void {
  checkSize(scenario);
  checkNames(scenario);
}

function checkNames({ servers, tools, plans = {}, clients, weather = {}, policies = {} }: ScenarioFile): void {
  if (Object.keys(tools).length === 0) refuse('tools is empty; name at least one tool and its server');
  for (const [name, { server }] of Object.entries(tools))
    if (!Object.hasOwn(servers, server))
      refuse(`tools.${name}: there is no server ${server}; there are ${names(servers)}`);
  for (const [name, server] of Object.entries(servers)) {
    if ('row' in server) continue;
    if (server.weather !== undefined && !Object.hasOwn(weather, server.weather))
      refuse(`servers.${name}: there is no weather ${server.weather}; there are ${names(weather)}`);
    for (const span of [...(server.dips ?? []), ...(server.outages ?? []), ...(server.bursts ?? [])])
      if (span.to_s <= span.from_s)
        refuse(`servers.${name}: a span ends at ${span.to_s} s, not after ${span.from_s} s`);
  }
  for (const [index, { tool, plan }] of clients.entries()) {
    if (tool !== undefined && plan !== undefined) refuse(`clients.${index}: takes a tool or a plan, not both`);
    if (tool !== undefined && !Object.hasOwn(tools, tool))
      refuse(`clients.${index}: there is no tool ${tool}; there are ${names(tools)}`);
    if (plan !== undefined && !Object.hasOwn(plans, plan))
      refuse(`clients.${index}: there is no plan ${plan}; there are ${names(plans)}`);
  }
  for (const [name, { nodes }] of Object.entries(plans))
    for (const node of nodes)
      if (!Object.hasOwn(tools, node.tool))
        refuse(`plans.${name}: there is no tool ${node.tool}; there are ${names(tools)}`);
  for (const [name, policy] of Object.entries(policies))
    for (const tool of Object.keys(policy.tools ?? {}))
      if (!Object.hasOwn(tools, tool)) refuse(`policies.${name}: there is no tool ${tool}; there are ${names(tools)}`);
}
