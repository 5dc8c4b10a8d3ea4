export { runAgent, type AgentOptions } from './run-agent.ts';
export type { AgentEvent, AgentReason, AgentResult, AgentStatus, ModelErrorReport } from './event.ts';
export { agentMessagesSchema, type AgentMessage, type AssistantMessage, type ProviderData, type ProviderPart, type TextPart, type ToolCallPart, type ToolMessage, type ToolResult, type UserMessage } from './message.ts';
export type { AgentModel, ModelEvent, ModelOptions, ModelTool, ModelUsage, StopReason } from './model.ts';
export type { AgentLimitOptions, AgentLimits, LoopLimits } from './limits.ts';
export {
  repairTranscript,
  type KnownAnswer,
  type RepairedTranscript,
  type TranscriptEvidence,
  type TranscriptRepair,
} from './transcript.ts';
export { evidenceFromTrace } from './evidence.ts';
export { failureText, outputText, type Effect, type FailureWords } from '../policy/model-text.ts';
export { keptOutputs, type KeptOutputs } from './kept-outputs.ts';
export type { AgentLayer } from './tool-step.ts';
export { scriptedModel, type ScriptedCall, type ScriptedModel, type ScriptedRequest, type ScriptedStep } from './scripted.ts';
