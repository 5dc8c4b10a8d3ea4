import type { sideInstall } from '../../side-install.ts';

type Install = Parameters<typeof sideInstall>;
type FrameworkInstall =
  | 'adk'
  | 'claudeAgent'
  | 'genkit'
  | 'langchain'
  | 'llamaIndex'
  | 'mastra'
  | 'strands'
  | 'voltAgent';

/**
 * The frameworks that are not in the main install, which would be five times as large with them: what `sideInstall`
 * takes for each. zod is of our own version, so that schemas have one type. Megabytes in comments.
 */
export const PACKAGES: Readonly<Record<FrameworkInstall, Install>> = {
  // 71
  langchain: ['langchain', ['langchain@1.5.14', '@langchain/core@1.4.0', '@langchain/langgraph@1.7.3', 'zod@4.6.7']],
  // 132
  mastra: ['mastra', ['@mastra/core@1.71.0', 'zod@4.6.7']],
  // 66, without the command for each platform
  claudeAgent: ['claude-agent', ['@anthropic-ai/claude-agent-sdk@0.3.331', 'zod@4.6.7'], ['--omit=optional']],
  // 91, and 323 with the exporters of Google's that are optional
  genkit: ['genkit', ['genkit@1.42.0', '@cfworker/json-schema@4.1.1'], ['--omit=optional', '--omit=peer']],
  // 58
  strands: ['strands', ['@strands-agents/sdk@1.19.0', 'zod@4.6.7']],
  // 41, the parts that tools and agents need
  llamaIndex: ['llamaindex', ['@llamaindex/core@0.6.23', '@llamaindex/workflow@1.1.25', 'zod@4.6.7']],
  // 313, of which the AI SDK 6 is its peer
  voltAgent: ['voltagent', ['@voltagent/core@2.10.0', 'ai@6.0.0', 'zod@4.6.7']],
  // 158
  adk: ['adk', ['@google/adk@2.0.0', 'zod@4.6.7']],
};
