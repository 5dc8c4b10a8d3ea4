import { AsyncLocalStorage } from 'node:async_hooks';
import { checkKeys, checkNumber, integer } from '../../policy/check.ts';
import { failureText } from '../../policy/model-text.ts';
import type { ForeignOutcome } from './call-history.ts';
import { Steering } from './steering.ts';
import { ToolFailure } from './tool-failure.ts';

/** Whose tool was called; `function` is one of nobody's, by `guardFunction`. */
export type FrameworkName =
  | 'ai-sdk'
  | 'anthropic'
  | 'claude-agent'
  | 'function'
  | 'genkit'
  | 'google-adk'
  | 'langchain'
  | 'llamaindex'
  | 'mastra'
  | 'mcp'
  | 'openai-agents'
  | 'strands'
  | 'voltagent';

/** A guarded call of a run, and what has become of it. */
export interface HarvestedCall {
  /** Whose tool was called; `resumeMessages` of that framework's entry reads the call. */
  readonly framework: FrameworkName;
  /** The tool's name, as its framework knows it. */
  readonly toolName: string;
  /** The id that the model gave the call; absent where the framework passes none on, as MCP does. */
  readonly toolCallId: string | undefined;
  /** The arguments as the framework gave them, which has checked them. */
  readonly input: unknown;
  /** Which model step the call belongs to, counted from 0: calls that overlap in time share a number. */
  readonly step: number;
  /** `running`: the call has not settled yet, as when its framework went on without it. */
  readonly state: 'running' | 'succeeded' | 'failed';
  /** With `succeeded`: the value that the tool gave; of a stream its last value. */
  readonly output: unknown;
  /** With `failed`: its `message` is what a model may read, and says whether the tool ran. */
  readonly failure: ToolFailure | undefined;
  /**
   * With `failed`, where the tool threw its framework's own error for the model: what is in it, as the framework's API
   * takes it.
   */
  readonly failureContent?: unknown;
  /** What the framework gave beside the input; `resumeMessages` needs it, and nobody else should read it. */
  readonly origin: unknown;
}

/** What the guarded calls of one run came to, whatever becomes of the run. */
export interface GuardedHarvest {
  /**
   * Does some work and keeps the guarded calls that it makes, as far as its asynchronous context reaches. Gives, or
   * throws, what the work does.
   */
  run<T>(work: () => T): T;
  /** The kept calls, in the order in which they began. */
  readonly calls: readonly HarvestedCall[];
  /** How many calls were dropped because there were more than `maxCalls`. */
  readonly forgotten: number;
}

/** How much a harvest keeps. */
export interface HarvestOptions {
  /** Calls that are kept at a time, 1 to 100,000; the oldest makes room. Default 1,000. */
  readonly maxCalls?: number;
}

const MAX_CALLS = 1_000;

/** A call while it is kept. */
export class GuardedCall implements HarvestedCall {
  readonly framework: FrameworkName;
  readonly toolName: string;
  readonly toolCallId: string | undefined;
  readonly input: unknown;
  readonly step: number;
  readonly origin: unknown;
  state: HarvestedCall['state'] = 'running';
  output: unknown;
  failure: ToolFailure | undefined;
  failureContent: unknown;
  readonly #settled: () => void;

  constructor({ framework, toolName, toolCallId, input, origin }: NewCall, step: number, settled: () => void) {
    this.framework = framework;
    this.toolName = toolName;
    this.toolCallId = toolCallId;
    this.input = input;
    this.origin = origin;
    this.step = step;
    this.#settled = settled;
  }

  settle(outcome: ForeignOutcome): void {
    if (this.state !== 'running') return;
    // It has no result: it asked a person, or steered its framework elsewhere.
    if (outcome.succeeded && outcome.value instanceof Steering) return this.abandon();
    this.state = outcome.succeeded ? 'succeeded' : 'failed';
    if (outcome.succeeded) this.output = outcome.value;
    else {
      this.failure = outcome.failure;
      this.failureContent = outcome.answer?.content;
    }
    this.#settled();
  }

  /** Nobody waits for it any more. */
  abandon(): void {
    this.settle({ succeeded: false, failure: new ToolFailure('canceled', failureText('canceled', 'may_have_run')) });
  }
}

type NewCall = Pick<HarvestedCall, 'framework' | 'toolName' | 'input'> & {
  readonly toolCallId?: string | undefined;
  readonly origin?: unknown;
};

class CallHarvest implements GuardedHarvest {
  forgotten = 0;
  readonly #maxCalls: number;
  #calls: GuardedCall[] = [];
  #running = 0;
  #step = -1;

  constructor(maxCalls: number) {
    this.#maxCalls = maxCalls;
  }

  get calls(): readonly HarvestedCall[] {
    return [...this.#calls];
  }

  run<T>(work: () => T): T {
    return current.run(this, work);
  }

  add(call: NewCall): GuardedCall {
    // A model asks again once it has all answers: what begins while nothing runs is of its next step.
    if (this.#running === 0) this.#step++;
    this.#running++;
    const kept = new GuardedCall(call, this.#step, () => this.#running--);
    this.#calls.push(kept);
    if (this.#calls.length > this.#maxCalls) {
      this.#calls = this.#calls.slice(1);
      this.forgotten++;
    }
    return kept;
  }
}

const current = new AsyncLocalStorage<CallHarvest | undefined>();

/** The run that a harvest is around, if one is. */
export const currentRun = (): object | undefined => current.getStore();

/** Keeps a call that begins, if a harvest is around it. */
export const keep = (call: NewCall): GuardedCall | undefined => current.getStore()?.add(call);

/** Runs a tool: the calls that it makes itself are its own business, and no part of the conversation. */
export const notHarvested = <T>(run: () => T): T =>
  current.getStore() === undefined ? run() : current.run(undefined, run);

/**
 * Keeps what guarded calls come to while a framework runs, so that it is there when the framework throws: on its
 * caller's abort each of them throws away the results of all calls of that step. `resumeMessages` makes messages of it,
 * to go on from there.
 *
 * Make one for each run; runs at the same time, also of one set of guarded tools, keep apart. It holds inputs and
 * outputs as the framework does, of failures only what a model may read, and nothing outlives it: let go of it when the
 * run is over. Needs `AsyncLocalStorage` (Node, Bun, Deno, Workers with `nodejs_als`). Read a stream inside `run`,
 * since its tools are called while it is read.
 *
 * @param options `maxCalls`: how many calls are kept at a time, default 1,000
 * @throws RangeError for an option that does not exist or is out of its range
 *
 * @example
 * const harvest = createHarvest();
 * await harvest.run(async () => 'what a framework gives').catch(() => undefined);
 * harvest.calls.map(({ toolName, state, output, failure }) => [toolName, state, output ?? failure?.message]);
 */
export function createHarvest(options: HarvestOptions = {}): GuardedHarvest {
  checkKeys('createHarvest', options, ['maxCalls']);
  const { maxCalls = MAX_CALLS } = options;
  checkNumber('maxCalls', maxCalls, integer(1, 100_000));
  return new CallHarvest(maxCalls);
}
