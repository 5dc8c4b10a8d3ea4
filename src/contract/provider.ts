import type { AnyTool } from './tool.ts';

/** A place where tools come from: its tools, and an end. */
export interface ToolProvider {
  readonly name: string;
  readonly tools: readonly AnyTool[];
  /** Stops what the provider started. Idempotent. */
  close(): Promise<void>;
}
