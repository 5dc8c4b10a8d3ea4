import type { Runtime } from '../contract/runtime.ts';
import type { Environment } from './environment.ts';
import type { Output } from './show/terminal.ts';

/** Where a command prints, what it reads beside its arguments, and what ends it early. */
export interface CommandContext {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Environment;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
}

/** What the process ends with; nothing else decides it. */
export const EXIT = { fine: 0, failed: 1, refused: 2, partial: 3, interrupted: 130 } as const;
