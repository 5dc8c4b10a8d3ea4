import type { PolicyFile } from '../../../contract/formats/policy-file.ts';
import type { ScenarioFile } from '../../../contract/formats/scenario-entry.ts';
import { scenarioFileSchema } from '../../../contract/formats/scenario-file.ts';
import { PlanError, plan } from '../../../turn/plan.ts';
import { SimulationInputError, readYamlAs } from '../../policy-file.ts';
import type { SimulateOptions } from '../simulate.ts';
import { checkSize } from './size.ts';

/**
 * Reads a scenario file.
 * @param what the file's name, for messages
 * @param options `maxCalls` that `simulate` will be given: more than a run takes else is refused here already
 * @throws SimulationInputError that names the line and column, or what refers to nothing
 */
export function readScenarioFile(
  text: string,
  what: string,
  { maxCalls }: Pick<SimulateOptions, 'maxCalls'> = {},
): ScenarioFile {
  const scenario = readYamlAs(scenarioFileSchema, text, what, 'scenario');
  checkScenario(scenario, maxCalls);
  return scenario;
}

const refuse = (message: string): never => {
  throw new SimulationInputError(message);
};

const names = (of: Readonly<Record<string, unknown>> | undefined): string => Object.keys(of ?? {}).join(', ') || 'none';

/** Whether all that a scenario names is there. @throws SimulationInputError */
export function checkScenario(scenario: ScenarioFile, maxCalls?: number): void {
  checkNames(scenario);
  checkSize(scenario, maxCalls);
  checkSpans(scenario);
  checkPlans(scenario);
}

interface Spans {
  readonly of: string;
  readonly spans?: readonly { readonly from_s: number; readonly to_s: number }[] | undefined;
  /** Each says how much: of two at a time nobody knows which holds. */
  readonly alone: boolean;
}

/** Whether each span ends after it begins, and no two of a kind say different things of one time. */
function checkSpans({ servers, clients }: ScenarioFile): void {
  const all: Spans[] = [];
  for (const [name, server] of Object.entries(servers)) {
    if ('row' in server) continue;
    const { dips, outages, bursts, latency } = server;
    if ('median_ms' in latency && latency.p99_ms < latency.median_ms)
      refuse(
        `servers.${name}: p99_ms, ${latency.p99_ms}, is below median_ms, ${latency.median_ms}; make it at least that`,
      );
    all.push({ of: `servers.${name}.dips`, spans: dips, alone: true });
    all.push({ of: `servers.${name}.bursts`, spans: bursts, alone: true });
    all.push({ of: `servers.${name}.outages`, spans: outages, alone: false });
  }
  for (const [index, entry] of clients.entries())
    if ('poisson' in entry) all.push({ of: `clients.${index}.surges`, spans: entry.poisson.surges, alone: true });
  for (const { of, spans = [], alone } of all) {
    for (const { from_s, to_s } of spans)
      if (to_s <= from_s) refuse(`${of}: a span ends at ${to_s} s, not after ${from_s} s; end it later`);
    const inOrder = spans.toSorted((a, b) => a.from_s - b.from_s);
    const early = inOrder.find(({ from_s }, index) => alone && from_s < (inOrder[index - 1]?.to_s ?? 0));
    if (early !== undefined)
      refuse(`${of}: a span begins at ${early.from_s} s, before the one before it has ended; let them not overlap`);
  }
}

/** Whether a turn can be made of each plan. */
function checkPlans({ plans = {} }: ScenarioFile): void {
  for (const [name, { nodes }] of Object.entries(plans))
    try {
      plan.from(nodes);
    } catch (error) {
      if (!(error instanceof PlanError)) throw error;
      refuse(`plans.${name}: ${error.message}`);
    }
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
  }
  for (const [index, { tool, plan: asked }] of clients.entries()) {
    if (tool !== undefined && asked !== undefined) refuse(`clients.${index}: takes a tool or a plan, not both`);
    if (tool !== undefined && !Object.hasOwn(tools, tool))
      refuse(`clients.${index}: there is no tool ${tool}; there are ${names(tools)}`);
    if (asked !== undefined && !Object.hasOwn(plans, asked))
      refuse(`clients.${index}: there is no plan ${asked}; there are ${names(plans)}`);
  }
  for (const [name, { nodes }] of Object.entries(plans))
    for (const node of nodes)
      if (!Object.hasOwn(tools, node.tool))
        refuse(`plans.${name}: there is no tool ${node.tool}; there are ${names(tools)}`);
  checkPolicies(tools, policies, 'policies.');
}

/** Whether all tools of policies are there: one that is not would change nothing, and say so to nobody. */
export function checkPolicies(
  tools: ScenarioFile['tools'],
  policies: Readonly<Record<string, PolicyFile>>,
  prefix: string,
): void {
  for (const [name, policy] of Object.entries(policies))
    for (const tool of Object.keys(policy.tools ?? {}))
      if (!Object.hasOwn(tools, tool)) refuse(`${prefix}${name}: there is no tool ${tool}; there are ${names(tools)}`);
}
