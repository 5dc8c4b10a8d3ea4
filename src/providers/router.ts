import type { ZodType } from 'zod';
import type { ToolPolicy } from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { ToolOutput } from '../contract/output.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';
import { correctable } from '../policy/advice.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import type { JsonSchema } from '../policy/json-schema.ts';
import { handoffJsonSchema, parameterRule, type OfferedAgent } from './router/schema.ts';

/** A turn that is handed over. */
export interface Handoff<Parameters = unknown> {
  /** The name of the agent that takes over. */
  readonly agent: string;
  /** What the agent was given, as its schema parsed it. */
  readonly parameters: Parameters;
  /** The names of the agents that the turn has gone through, in order, this agent's last. */
  readonly chain: readonly string[];
  /**
   * The router for the agent's own layer: it offers the same agents and knows the chain. An agent whose layer lacks it
   * hands nothing on.
   */
  readonly router: ToolProvider;
}

/** An agent that a turn can be handed to. */
export interface RoutedAgent<Parameters = unknown> {
  /** The agent's name: 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string;
  /** When to hand over to the agent, in words for the model. */
  readonly description: string;
  /** What the agent must be given: a zod schema, or a JSON Schema (2020-12, unless `$schema` names another). */
  readonly parameters: ZodType<Parameters> | JsonSchema;
  /** Takes the turn. Its last value is the hand-off's output; the context's signal ends it. */
  run(handoff: Handoff<Parameters>, context: ToolContext): ToolOutput<unknown>;
}

/** Who a turn can be handed to, and under which policy. */
export interface RouterProviderOptions<Agents extends readonly unknown[] = readonly unknown[]> {
  /** The provider's name. Default `router`. */
  readonly name?: string;
  /** The agents, 1 to 100, each with a name of its own. */
  readonly agents: { readonly [Index in keyof Agents]: RoutedAgent<Agents[Index]> };
  /** The agent that this router belongs to, if others can hand to it: then nobody hands back to it while it waits. */
  readonly from?: string;
  /** How often one turn may be handed on before a hand-off is refused with `limit_exceeded`, 1 to 100. Default 5. */
  readonly maxDepth?: number;
  /**
   * The policy of the hand-off itself. Default: 300,000 ms for a whole turn, no retries and no breaker, since
   * the agent's own layer has them, and `mutating`.
   */
  readonly policy?: ToolPolicy;
}

const OPTION_KEYS = ['name', 'agents', 'from', 'maxDepth', 'policy'];
const AGENT_KEYS = ['name', 'description', 'parameters', 'run'];
const AGENTS_MAX = 100;
const DEPTH = 5;
/** The turn's own default limit. */
const POLICY: ToolPolicy = { timeoutMs: 300_000, retry: { maxAttempts: 1 }, breaker: false, effects: 'mutating' };

type Agent = OfferedAgent & Pick<RoutedAgent, 'run'>;

/** What the routers of one chain share. */
interface Routing {
  readonly name: string;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly jsonSchema: JsonSchema;
  readonly maxDepth: number;
  readonly policy: ToolPolicy;
}

/** A refusal is for the model to read: it says how to correct the call. */
const refused = (
  kind: 'invalid_parameters' | 'not_permitted' | 'limit_exceeded',
  message: string,
): ToolExecutionError => {
  const safeMessage = kind === 'invalid_parameters' ? correctable(message) : `${message}. Do not try again.`;
  return new ToolExecutionError(kind, message, { safeMessage });
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const shown = (value: unknown): string =>
  typeof value === 'string'
    ? JSON.stringify(value.slice(0, 64))
    : value === null || value === undefined
      ? 'nothing'
      : `a value of type ${typeof value}`;

/** The agent that an input names, and what it is told. */
const readInput = (input: unknown, { agents }: Routing): { readonly agent: Agent; readonly parameters: unknown } => {
  const names = [...agents.keys()].join(', ');
  if (!isRecord(input))
    throw refused('invalid_parameters', `The input must be an object with agent (one of ${names}) and parameters`);
  const { agent: named, parameters, ...others } = input;
  const agent = typeof named === 'string' ? agents.get(named) : undefined;
  if (agent === undefined) throw refused('invalid_parameters', `agent must be one of ${names}, not ${shown(named)}`);
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw refused(
      'invalid_parameters',
      `The input has agent and parameters only, not ${shown(other)}; what ${agent.name} has to know goes in parameters`,
    );
  return { agent, parameters };
};

const router = (routing: Routing, chain: readonly string[]): ToolProvider => {
  const { name, jsonSchema, maxDepth, policy } = routing;
  const handOff = (input: unknown, context: ToolContext): ToolOutput<unknown> => {
    const { agent, parameters } = readInput(input, routing);
    const fitted = agent.rule.fit(parameters);
    if ('problem' in fitted)
      throw refused('invalid_parameters', `The parameters for ${agent.name} are malformed: ${fitted.problem}`);
    const longer = [...chain, agent.name];
    if (chain.includes(agent.name))
      throw refused(
        'not_permitted',
        `${agent.name} waits for this turn already (${longer.join(' -> ')}); answer it instead of handing back`,
      );
    if (longer.length > maxDepth)
      throw refused(
        'limit_exceeded',
        `A turn is handed on ${maxDepth} times at most (${longer.join(' -> ')}); answer with what is known`,
      );
    return agent.run(
      { agent: agent.name, parameters: fitted.value, chain: longer, router: router(routing, longer) },
      context,
    );
  };
  const tool: Tool = {
    name: `${name}.handoff-to`,
    description: 'Hands the turn to another agent, and gives what that agent answers.',
    inputJsonSchema: jsonSchema,
    policy,
    dependency: name,
    execute: handOff,
  };
  return { name, tools: [tool], close: () => Promise.resolve() };
};

const checkedAgent = (agent: RoutedAgent, index: number): Agent => {
  const at = `agents[${index}]`;
  if (!isRecord(agent)) throw new RangeError(`${at} must be an object with name, description, parameters and run`);
  checkKeys(at, agent, AGENT_KEYS);
  const { name, description, parameters } = agent;
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new RangeError(`${at}.name must be 1 to 64 letters, digits, _ and -, not ${shown(name)}`);
  if (typeof description !== 'string' || description === '')
    throw new RangeError(`${at}.description must be a text that tells the model when to hand to ${name}`);
  if (!isRecord(parameters))
    throw new RangeError(`${at}.parameters must be a zod schema or a JSON Schema, not ${shown(parameters)}`);
  if (typeof agent.run !== 'function') throw new RangeError(`${at}.run must be a function, not ${typeof agent.run}`);
  try {
    return {
      name,
      description,
      rule: parameterRule(parameters),
      run: (handoff, context) => agent.run(handoff, context),
    };
  } catch (error) {
    throw new RangeError(`${at}.parameters: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
};

/**
 * A tool, `router.handoff-to`, with which a model hands its turn to another agent. Its input is `{ agent, parameters
 * }`; the parameters are checked against the agent's own schema, which the model is shown.
 *
 * Malformed input, and an agent that does not exist, give `invalid_parameters`; an agent that waits for this turn
 * already `not_permitted`; a chain of more than `maxDepth` agents `limit_exceeded`. None of these runs anything, and
 * their texts may be shown to the model. The agent gets the call's context: signal, key, trace context, progress. What
 * it throws is the hand-off's failure.
 *
 * @throws RangeError for an option out of its range, two agents of one name, or a JSON Schema that cannot be used
 *
 * @example
 * const router = routerProvider({
 *   agents: [
 *     {
 *       name: 'billing',
 *       description: 'Invoices, refunds and payments.',
 *       parameters: z.object({ question: z.string(), customerId: z.string() }),
 *       run: ({ parameters: { question, customerId } }) => `Asked ${question} about ${customerId}.`,
 *     },
 *   ],
 * });
 * const spillway = createSpillway({ providers: [router] });
 */
export function routerProvider<const Agents extends readonly unknown[]>(
  options: RouterProviderOptions<Agents>,
): ToolProvider {
  checkKeys('routerProvider', options, OPTION_KEYS);
  const { name = 'router', from, maxDepth = DEPTH, policy } = options;
  const listed: readonly RoutedAgent[] = Array.isArray(options.agents) ? options.agents : [];
  if (typeof name !== 'string' || name === '') throw new RangeError('name must be a text of at least one character');
  if (listed.length === 0 || listed.length > AGENTS_MAX)
    throw new RangeError(`agents must be a list of 1 to ${AGENTS_MAX} agents`);
  checkNumber('maxDepth', maxDepth, integer(1, 100));
  const agents = new Map<string, Agent>();
  for (const [index, agent] of listed.entries()) {
    const checked = checkedAgent(agent, index);
    if (agents.has(checked.name))
      throw new RangeError(
        `agents[${index}].name: another agent is called ${checked.name}; give one of them another name`,
      );
    agents.set(checked.name, checked);
  }
  if (from !== undefined && !agents.has(from))
    throw new RangeError(`from must be one of the agents (${[...agents.keys()].join(', ')}), not ${shown(from)}`);
  const offered = [...agents.values()];
  return router(
    { name, agents, jsonSchema: handoffJsonSchema(offered), maxDepth, policy: { ...POLICY, ...policy } },
    from === undefined ? [] : [from],
  );
}
