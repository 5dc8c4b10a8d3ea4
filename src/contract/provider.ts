import type { AnyTool } from './tool.ts';

/** A place where tools come from: its tools, and an end. */
export interface ToolProvider {
  /** Names the provider in messages and warnings. */
  readonly name: string;
  /**
   * Those of the moment. A list that changes is another array, in which a tool that stayed as it was is the same
   * object.
   */
  readonly tools: readonly AnyTool[];
  /** Stops what the provider started. Idempotent. */
  close(): Promise<void>;
}
