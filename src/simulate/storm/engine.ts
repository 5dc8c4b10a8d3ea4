import type { PolicyFile } from '../../contract/formats/policy-file.ts';
import type { ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import type { RetryBudgetOptions, ToolPolicy } from '../../contract/policy.ts';
import type { BreakerStateName } from '../../contract/breaker-state.ts';
import { budgetOf, toolPolicyOf } from '../policy-file.ts';
import type { SimulatedTime } from '../time.ts';
import type { Server } from './server.ts';
import type { StormTally } from './tally.ts';

/** How a call or a turn ended. */
export interface Ended {
  readonly succeeded: boolean;
  /** A breaker refused it. */
  readonly refused: boolean;
}

/** Carries out what clients ask for, under a policy. */
export interface Engine {
  call(toolName: string, ended: (end: Ended) => void): void;
  turn(planName: string, ended: (end: Ended) => void): void;
}

/** What an engine is made of. */
export interface EngineParts {
  readonly scenario: ScenarioFile;
  readonly policy: PolicyFile;
  readonly time: SimulatedTime;
  readonly servers: ReadonlyMap<string, Server>;
  readonly tally: StormTally;
  /** Tells processes apart. */
  readonly process: number;
  readonly breakerChanged: (toolName: string, state: BreakerStateName) => void;
}

/** The policy of a tool in a scenario: what the file says, over what is said of all, over what the tool is. */
export const policyFor = ({ scenario, policy }: Pick<EngineParts, 'scenario' | 'policy'>, name: string): ToolPolicy => {
  const { effects = 'read' } = scenario.tools[name] ?? {};
  const own = policy.tools?.[name];
  return { effects, ...(own === undefined ? {} : toolPolicyOf(own)) };
};

export const defaultsFor = ({ policy }: Pick<EngineParts, 'policy'>): ToolPolicy =>
  policy.defaults === undefined ? {} : toolPolicyOf(policy.defaults);

export const budgetFor = ({ policy }: Pick<EngineParts, 'policy'>): RetryBudgetOptions | false =>
  policy.retry_budget === undefined ? {} : budgetOf(policy.retry_budget);

/**
 * Whether a tool may take effect again under a key: its resource acts once where it keeps keys, and the policy says
 * that the tool hands them over.
 */
export const actsAgain = (parts: Pick<EngineParts, 'scenario' | 'policy'>, name: string): boolean => {
  const { effects, keeps_keys = false } = parts.scenario.tools[name] ?? {};
  const { enforcesKey = false } = { ...defaultsFor(parts), ...policyFor(parts, name) };
  return effects === 'mutating' && !(keeps_keys && enforcesKey);
};
