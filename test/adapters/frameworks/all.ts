import { claudeAgentPaying, claudeAgentWith, loadClaudeAgent } from './claude-agent.ts';
import { genkitPaying, genkitWith, loadGenkit } from './genkit.ts';
import { adkPaying, adkWith, loadAdk } from './google-adk.ts';
import type { Framework, PayingFramework } from './kit.ts';
import { langChainRetrying, langChainWith, loadLangChain } from './langchain.ts';
import { llamaIndexPaying, llamaIndexWith, loadLlamaIndex } from './llamaindex.ts';
import { loadMastra, mastraPaying, mastraWith } from './mastra.ts';
import { loadStrands, strandsPaying, strandsWith } from './strands.ts';
import { toolNodePaying, toolNodeWith } from './tool-node.ts';
import { loadVoltAgent, voltAgentPaying, voltAgentWith } from './voltagent.ts';

/** The frameworks that are installed beside the main install, each with its real package. */
export async function loadAll(): Promise<readonly Framework[]> {
  // One after the other: npm takes the whole machine.
  const lc = await loadLangChain();
  return [
    langChainWith(lc),
    langChainRetrying(lc),
    toolNodeWith(lc),
    mastraWith(await loadMastra()),
    claudeAgentWith(await loadClaudeAgent()),
    genkitWith(await loadGenkit()),
    strandsWith(await loadStrands()),
    llamaIndexWith(await loadLlamaIndex()),
    voltAgentWith(await loadVoltAgent()),
    adkWith(await loadAdk()),
  ];
}

export const PAYING_BESIDE: readonly PayingFramework[] = [
  toolNodePaying(true),
  toolNodePaying(false),
  mastraPaying,
  claudeAgentPaying,
  genkitPaying,
  strandsPaying,
  llamaIndexPaying,
  voltAgentPaying,
  adkPaying,
];
