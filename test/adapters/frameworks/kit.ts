import { setTimeout as sleep } from 'node:timers/promises';
import { vi } from 'vitest';
import type { ToolPolicy } from '../../../src/contract/policy.ts';
import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import type { GuardLayerOptions } from '../../../src/adapters/guarded/calls.ts';
import type { GuardedHarvest } from '../../../src/adapters/guarded/harvest.ts';

/** In what tools throw. A model must not see it. */
export const CANARY = 'sk-canary-5f1d0c77';
/** How long the slow tool takes, whatever its signal says. */
export const SLOW_MS = 10_000;
/** The timeout that each side is given, where it has one. */
export const TIMEOUT_MS = 200;

export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface Script {
  /** The calls of the model's first step; its second one is its answer. Without any its first one is. */
  readonly calls: readonly ModelCall[];
  /** In how many of its first steps the model makes them. Default: 1. */
  readonly steps?: number;
  readonly guarded: boolean;
  readonly signal?: AbortSignal;
  /** Of each tool: its framework's own where that has one, or ours. Default: `TIMEOUT_MS`. */
  readonly timeoutMs?: number;
}

/** A model that only answers. */
export const ANSWER: Script = { calls: [], guarded: true };

/** What a run shows while it goes on: a run that hangs shows something too. */
export interface Seen {
  /** The texts that the model was given, by the id of its call. */
  readonly told: Map<string, string>;
  /** All that the model was sent after its first step, as JSON. */
  shown: string;
  /** The tools that ran, in order. */
  readonly ran: string[];
  /** The tools that answered, in order. */
  readonly answered: string[];
  /** Whether each tool's signal was aborted when it was last asked. */
  readonly signals: AbortSignal[];
}

export const nothingSeen = (): Seen => ({ told: new Map(), shown: '', ran: [], answered: [], signals: [] });

/** What a host of a framework without `resumeMessages` can tell its model of the calls of a run that threw. */
export const tellByHand = (seen: Seen, { calls }: Pick<GuardedHarvest, 'calls'>, asked: readonly ModelCall[]): void => {
  for (const { toolName, output, failure } of calls) {
    const text = JSON.stringify(output) ?? String(failure);
    seen.told.set(asked.find(({ name }) => name === toolName)?.id ?? '', text);
    seen.shown += text;
  }
};

/** A framework under test: one run of a scripted model with the tools below. */
export interface Framework {
  readonly name: string;
  /** It runs one call after the other. */
  readonly sequential?: true;
  /** A call of a tool that is not there ends its run before any adapter is asked. */
  readonly unknownEnds?: true;
  /** What cannot be measured beside other tests, by the title of its case. */
  readonly told?: Readonly<Record<string, string>>;
  /** The entry that guards it, under `spillway/adapters/`, and what is called. */
  readonly entry: string;
  /** It calls a tool with input that does not fit. */
  readonly unchecked?: true;
  /** Settles with the run; rejects as it does. */
  run(script: Script, seen: Seen): Promise<unknown>;
  /**
   * Goes on with what was kept of a guarded run that threw, so that the model is told of it. Without it a host tells
   * its model by itself, from the calls of the harvest.
   */
  resume?(seen: Seen, harvest: GuardedHarvest): Promise<unknown>;
}

/** The tools that every framework is given. `strict` takes `{ n: number }`, the others anything. */
export const BEHAVIOUR: Readonly<Record<string, () => Promise<string>>> = {
  slow: () => sleep(SLOW_MS, 'late', { ref: false }),
  good: async () => {
    await sleep(5);
    return 'fine';
  },
  bad: async () => {
    await sleep(5);
    throw new Error(`boom: password is ${CANARY}`);
  },
  worded: () =>
    Promise.reject(
      new ToolExecutionError('execution_error', `no such city, token ${CANARY}`, {
        status: 404,
        safeMessage: 'No city is called Atlantis.',
      }),
    ),
  strict: () => Promise.resolve('counted'),
  pay: () => Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })),
};

export const behave = async (name: string, seen: Seen, signal: AbortSignal | null | undefined): Promise<string> => {
  seen.ran.push(name);
  if (signal !== null && signal !== undefined) seen.signals.push(signal);
  const answer = await (BEHAVIOUR[name]?.() ?? Promise.reject(new Error(`no behaviour ${name}`)));
  seen.answered.push(name);
  return answer;
};

/**
 * Aborts once all calls of a run have begun, and all but the last of the slow ones have ended: however long the
 * framework takes until then.
 */
export const abortLate = async (
  controller: AbortController,
  harvest: Pick<GuardedHarvest, 'calls'>,
  count: number,
): Promise<void> => {
  const ended = (): number => harvest.calls.filter(({ state }) => state !== 'running').length;
  await vi.waitUntil(() => harvest.calls.length === count && ended() === count - 1, { timeout: 60_000, interval: 5 });
  controller.abort();
};

/** Retries are the layer's own: it does not try again what may have taken effect. */
export const defaultsOf = ({ timeoutMs = TIMEOUT_MS }: Pick<Script, 'timeoutMs'>): ToolPolicy => ({ timeoutMs });

/** What the tool `pay` does. */
export type Pay = () => Promise<string>;
export interface PayingFramework {
  readonly name: string;
  /** A model of the framework calls the guarded `pay` once. */
  pay(execute: Pay, options: GuardLayerOptions): Promise<unknown>;
}

/** The model calls `pay` once, then answers. */
export const PAY_SCRIPT: Script = { calls: [{ id: 'c1', name: 'pay', input: {} }], guarded: true };

/** The same options for an adapter whose tools have one policy. */
export const onePolicy = (
  { policies, ...options }: GuardLayerOptions,
  name: string,
): Omit<GuardLayerOptions, 'policies'> & { readonly policy?: ToolPolicy } => {
  const policy = policies?.[name];
  return { ...options, ...(policy === undefined ? {} : { policy }) };
};

/** A framework that is not in the main install: what `load` gives is made once. */
export const once = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let loading: Promise<T> | undefined;
  return () => (loading ??= load());
};
