import type { ProfileName, ToolPolicy } from '../../contract/policy.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { tool } from '../../layer/tool.ts';
import { createSpillway } from '../../spillway.ts';

/** The policy of a tool, and where in its file it stands. */
export interface PlacedPolicy {
  readonly name: string;
  readonly policy: ToolPolicy;
  readonly at: Path;
}

/** What policies say that they cannot mean; of a tool whose server has not been asked, effects are unknown. */
export const checkPolicies = (
  placed: readonly PlacedPolicy[],
  profile?: ProfileName,
): { readonly problems: Problem[]; readonly warnings: string[] } => {
  const problems: Problem[] = [];
  const warnings = placed.flatMap(({ name, policy: { alternatives: _, ...policy }, at }) => {
    try {
      const guarded = tool({ name, policy: { effects: 'mutating', ...policy }, execute: () => undefined });
      const { warnings } = createSpillway({ tools: [guarded], ...(profile === undefined ? {} : { profile }) });
      // Those of a tool that has the defaults are nobody's decision.
      return (policy.timeoutMs ?? policy.retry) === undefined ? [] : warnings;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push({ message: error.message, at });
      return [];
    }
  });
  return { problems, warnings };
};
