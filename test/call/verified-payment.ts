import {
  createSpillway,
  tool,
  ToolExecutionError,
  type Spillway,
  type SpillwayOptions,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import type { VerifyAnswer, VerifyContext } from 'spillway/contract';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { expect } from 'vitest';
import { traceFaults } from './kit.ts';

/** A payment that hangs, or loses its answer, and what `verify` says of it. */
export interface Scene {
  readonly runtime: VirtualRuntime;
  readonly layer: Spillway;
  readonly trace: TraceEvent[];
  readonly starts: number[];
  readonly asked: Array<VerifyContext & { readonly atMs: number }>;
}

export const PATIENT = {
  strategy: 'constant',
  initialDelayMs: 100,
  jitterPercent: 0,
  maxAttempts: 3,
  maxTotalTimeMs: 600_000,
} as const;

export const scene = (
  verify: (context: VerifyContext, nth: number) => unknown,
  pay: (attempt: number, signal: AbortSignal) => unknown,
  policy: ToolPolicy = {},
  options: SpillwayOptions = {},
): Scene => {
  const runtime = virtualRuntime();
  const beginMs = runtime.now();
  const starts: number[] = [];
  const asked: Array<VerifyContext & { atMs: number }> = [];
  const payment = tool({
    name: 'pay',
    policy: { timeoutMs: 1_000, retry: PATIENT, ...policy },
    execute: (_input: unknown, { attempt, signal }): unknown => {
      starts.push(runtime.now() - beginMs);
      return pay(attempt, signal);
    },
    verify: (_input: unknown, context): VerifyAnswer => {
      asked.push({ ...context, atMs: runtime.now() - beginMs });
      return verify(context, asked.length) as VerifyAnswer;
    },
  });
  const layer = createSpillway({ tools: [payment], runtime, ...options });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  return { runtime, layer, trace, starts, asked };
};

export const lost = (): never => {
  throw new ToolExecutionError('transport_error', 'connection reset', { code: 'ECONNRESET', uncertain: true });
};

export const ended = async ({ runtime, layer, trace }: Scene, signal?: AbortSignal): Promise<ToolResultEnvelope> => {
  const result = layer.execute({ toolName: 'pay', input: { amount: 7 } }, signal === undefined ? {} : { signal });
  await runtime.run();
  expect(traceFaults(trace.slice(1))).toEqual([]);
  return result;
};
