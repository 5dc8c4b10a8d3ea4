export { runAgent, type AgentOptions } from './loop/agent.ts';
export type { AgentEvent, AgentReason, AgentResult, AgentStatus, ModelErrorReport } from './event.ts';
export {
  agentMessagesSchema,
  type AgentMessage,
  type AssistantMessage,
  type ProviderData,
  type ProviderPart,
  type TextPart,
  type ToolCallPart,
  type ToolMessage,
  type ToolResult,
  type UserMessage,
} from './message.ts';
export type { AgentModel, ModelEvent, ModelOptions, ModelTool, ModelUsage, StopReason } from './model.ts';
export type { AgentLimitOptions, AgentLimits, LoopLimits } from './loop/limits.ts';
export {
  repairTranscript,
  type KnownAnswer,
  type RepairedTranscript,
  type TranscriptEvidence,
  type TranscriptRepair,
} from './loop/transcript.ts';
export { chargedModel, type ChargeOptions } from './charged.ts';
export { evidenceFromTrace } from './loop/evidence.ts';
export { failureText, outputText, type Effect, type FailureWords } from '../policy/model-text.ts';
export { storedOutputs, type StoredOutputs } from './loop/stored-outputs.ts';
export type { AgentLayer } from './loop/tool-step.ts';
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedRequest,
  type ScriptedStep,
} from './scripted.ts';
