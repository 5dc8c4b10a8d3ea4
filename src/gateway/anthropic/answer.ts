import type { LoopGuard } from '../../agent/loop/guard.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { addUsage, contentJson, fieldsOf, type Block, type Fields } from './blocks.ts';
import type { GatewayReport } from './report.ts';
import type { ConversationRequest } from './request.ts';
import { answerKey, chainOf, chained } from './restore.ts';
import type { GatewayTools, OfferedTools } from './tools.ts';
import {
  UpstreamRefusal,
  isTransient,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamRequest,
} from '../wire/upstream.ts';
import type { ConversationClient } from '../conversation/client.ts';
import type { ConversationRecord } from '../conversation/conversation.ts';
import { GatewayError } from '../wire/error.ts';

/** How one answer of the upstream ended. */
export interface StepEnd {
  readonly blocks: readonly Block[];
  /** Whether one of them is a call. */
  readonly hasCalls: boolean;
  readonly stopReason: unknown;
  readonly usage: Fields;
  readonly container: string | undefined;
}

/** What comes after a step: a further answer of the upstream, or the end. */
export type Outcome =
  | { readonly type: 'continued'; readonly answer: UpstreamAnswer }
  /** `warning`: the state could not be stored. */
  | { readonly type: 'final'; readonly warning?: string };

/** What all turns of a gateway share. */
export interface TurnServices {
  readonly upstream: Upstream;
  readonly tools: GatewayTools;
  readonly state: ConversationClient;
  readonly report: GatewayReport;
  readonly maxSteps: number;
  readonly failed: FailedRequests;
}

/** How long a failed request that is sent again goes on from where it was. */
const RESUMED_WITHIN_MS = 600_000;
const FAILED_MAX = 10_000;

/** Requests that failed here after steps were made, for clients that do not say that they ask again. */
export class FailedRequests {
  readonly #atMs = new Map<string, number>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get none(): boolean {
    return this.#atMs.size === 0;
  }

  add(key: string): void {
    this.#atMs.delete(key);
    this.#atMs.set(key, this.#runtime.now());
    const [oldest] = this.#atMs.keys();
    if (this.#atMs.size > FAILED_MAX && oldest !== undefined) this.#atMs.delete(oldest);
  }

  /** Whether it failed not long ago; it is forgotten with that. */
  take(key: string): boolean {
    const atMs = this.#atMs.get(key);
    this.#atMs.delete(key);
    return atMs !== undefined && this.#runtime.now() - atMs <= RESUMED_WITHIN_MS;
  }
}

/** What one turn is made of. */
export interface TurnRequest {
  readonly requestId: string;
  /** Whose conversation it is. */
  readonly scope: string;
  /** The client's request. */
  readonly value: Fields;
  /** What it is kept under for when it is sent again. */
  readonly retryKey: () => string;
  readonly conversation: ConversationRequest;
  readonly offered: OfferedTools;
  /** Steps made when the same request was sent before, and failed. */
  readonly resumed: readonly string[];
  /** Who kept them; else whoever makes this turn. */
  readonly author: string;
  readonly upstream: Omit<UpstreamRequest, 'body'>;
  /** Aborted when the gateway is shut down. */
  readonly harvest: AbortSignal;
}

/** The `tool_choice` of a last step. */
const NO_TOOL = '{"type":"none"}';
const NOTHING: Omit<ConversationRecord, 'author'> = { toolUseIds: [], before: '', content: '', results: '' };
const STORAGE_WARNING = 'The conversation state could not be stored: a request that answers these tool calls may fail.';

/**
 * One request of a client through all its steps: the tools of the gateway run between them, and the client sees one
 * answer.
 */
export class GatewayTurn {
  readonly #services: TurnServices;
  readonly #request: TurnRequest;
  readonly #guard: LoopGuard;
  /** Messages that the client does not see, each as JSON. */
  readonly #hidden: string[];
  /** Of an answer that paused: its blocks belong to the one that goes on. */
  #carried: readonly Block[] = [];
  readonly #visible: Fields[] = [];
  /** Hidden messages that were kept for when the request is sent again. */
  #kept = 0;
  #container: string | undefined;
  #steps = 1;
  usage: Fields = {};

  constructor(services: TurnServices, request: TurnRequest) {
    this.#services = services;
    this.#request = request;
    this.#guard = services.tools.guard();
    this.#hidden = [...request.resumed];
  }

  get requestId(): string {
    return this.#request.requestId;
  }

  /** Whether the answer is made of more than one of the upstream. */
  get merged(): boolean {
    return this.#hidden.length > this.#request.resumed.length || this.#carried.length > 0;
  }

  /** The body of the first step. */
  get firstBody(): string {
    const { conversation, resumed } = this.#request;
    return resumed.length === 0 ? conversation.text : conversation.next(resumed, this.#choice(resumed), undefined);
  }

  /** A call of a toolset is the client's, whatever its name. */
  isOurs({ type, name, toolset_name: toolset }: Fields): boolean {
    return (
      type === 'tool_use' &&
      (toolset === undefined || toolset === null) &&
      this.#request.offered.toolOf(name) !== undefined
    );
  }

  /** Nothing of the gateway's is in an answer: it can go on as it is, at once. */
  isPlain({ hasCalls }: StepEnd): boolean {
    return !this.merged && this.#request.resumed.length === 0 && !hasCalls;
  }

  /** The model was told to call no tool any more; what it answers is the end. */
  get #wasLast(): boolean {
    return this.#steps > 1 && this.#steps >= this.#services.maxSteps;
  }

  /**
   * The `tool_choice` of a step that follows others; none where the client's holds on. A call that the client forces is
   * one of the turn: once a tool of the gateway has been called for it the model is free, or it could never end.
   */
  #choice(hidden: readonly string[]): string | undefined {
    const { name, ...choice } = fieldsOf(this.#request.value['tool_choice']);
    const { type } = choice;
    const isForced = type === 'any' || (type === 'tool' && this.#request.offered.toolOf(name) !== undefined);
    return isForced && hidden.length > 0 ? JSON.stringify({ ...choice, type: 'auto' }) : undefined;
  }

  /** Decides what comes after a step, and does it. @throws UpstreamRefusal or GatewayError when a further step fails */
  async after(end: StepEnd): Promise<Outcome> {
    this.usage = addUsage(this.usage, end.usage);
    this.#container = end.container ?? this.#container;
    if (this.isPlain(end)) {
      this.#visible.push(...end.blocks.map(({ value }) => value));
      await this.#noteSaid(end.blocks);
      return { type: 'final' };
    }
    const ours =
      end.stopReason === 'tool_use' && !this.#wasLast ? end.blocks.filter(({ value }) => this.isOurs(value)) : [];
    // Calls in an answer that was cut off, or that may have none any more, are not made: the client sees an answer
    // without them.
    const kept = end.blocks.filter((block) => ours.includes(block) || !this.isOurs(block.value));
    const theirs = kept.filter((block) => block.value['type'] === 'tool_use' && !ours.includes(block));
    this.#visible.push(...kept.filter((block) => !ours.includes(block)).map(({ value }) => value));
    const content = [...this.#carried, ...kept];
    if (ours.length > 0) return this.#runTools(ours, theirs, content);
    if (end.stopReason === 'pause_turn' && this.merged && !this.#wasLast) {
      this.#carried = content;
      return this.#goOn([`{"role":"assistant","content":${contentJson(content)}}`]);
    }
    return this.#finish(theirs, content, '');
  }

  /** The request failed or was given up after steps were made: sent again, it goes on from there. */
  async keepForRetry(): Promise<void> {
    if (this.#hidden.length === this.#kept) return;
    this.#kept = this.#hidden.length;
    const key = this.#request.retryKey();
    this.#services.failed.add(key);
    await this.#store(key, { ...NOTHING, before: `[${this.#hidden.join(',')}]` });
  }

  /** The same for what it failed with: where asking again would fail again, there is nothing to go on from. */
  async keepAfter(error: unknown): Promise<void> {
    if (error instanceof UpstreamRefusal && !isTransient(error)) return;
    await this.keepForRetry();
  }

  async #runTools(ours: readonly Block[], theirs: readonly Block[], content: readonly Block[]): Promise<Outcome> {
    const { tools, report } = this.#services;
    const { offered, upstream, requestId } = this.#request;
    report.count('toolCalls', ours.length);
    const results = await tools.run(ours, offered, this.#guard, upstream.signal);
    for (const { kind, toolName } of results)
      if (kind !== undefined) report.error('tool_failed', requestId, { tool: toolName, tool_error: kind });
    const answers = `[${results.map(({ json }) => json).join(',')}]`;
    if (theirs.length > 0) return this.#finish(theirs, content, answers);
    this.#carried = [];
    this.#hidden.push(`{"role":"assistant","content":${contentJson(content)}}`, `{"role":"user","content":${answers}}`);
    return this.#goOn([]);
  }

  async #goOn(more: readonly string[]): Promise<Outcome> {
    const { upstream, report, maxSteps } = this.#services;
    const { conversation, upstream: request } = this.#request;
    if (request.signal.aborted) throw this.#ended();
    this.#steps++;
    report.count('steps');
    const body = conversation.next(
      [...this.#hidden, ...more],
      this.#steps >= maxSteps ? NO_TOOL : this.#choice(this.#hidden),
      this.#container,
    );
    try {
      return { type: 'continued', answer: await upstream.sendAgain({ ...request, body }) };
    } catch (error) {
      if (!(error instanceof UpstreamRefusal) && request.signal.aborted) throw this.#ended(error);
      throw error;
    }
  }

  /** Why a turn whose signal was aborted is over. */
  #ended(cause?: unknown): GatewayError {
    const { harvest } = this.#request;
    return harvest.aborted
      ? new GatewayError('draining', 'The gateway is being shut down; ask again', { cause })
      : new GatewayError('client_gone', 'The client went away', { cause });
  }

  /** The error of a turn that broke off: what the client is told. */
  broken(cause: unknown): GatewayError | UpstreamRefusal {
    if (this.#request.upstream.signal.aborted) return this.#ended(cause);
    if (cause instanceof GatewayError || cause instanceof UpstreamRefusal) return cause;
    return new GatewayError('upstream_broken', 'The upstream broke off its answer; ask again', { cause });
  }

  /** Remembers what the client does not see, so that its next request can be understood. */
  async #finish(theirs: readonly Block[], content: readonly Block[], results: string): Promise<Outcome> {
    const { scope, value, resumed, retryKey } = this.#request;
    // Asked anew, the same question gets new answers of the tools.
    if (resumed.length > 0) await this.#store(retryKey(), NOTHING);
    const toolUseIds = theirs.map((block) => String(block.value['id']));
    const [first] = toolUseIds;
    const all = contentJson(content);
    const hasHidden = this.#hidden.length > 0 || results !== '';
    if (first === undefined && (!hasHidden || all === '[]')) {
      await this.#noteSaid(content);
      return { type: 'final' };
    }
    const key = answerKey(scope, chained(chainOf(value), { role: 'assistant', content: this.#visible }), first);
    const stored = await this.#store(key, {
      toolUseIds,
      before: hasHidden ? `[${this.#hidden.join(',')}]` : '',
      content: hasHidden ? all : '',
      results,
    });
    // An answer without calls needs no results, so the API takes the conversation without what could not be stored.
    return stored || first === undefined ? { type: 'final' } : { type: 'final', warning: STORAGE_WARNING };
  }

  /**
   * Remembers that an answer in words is as the client has it. Another conversation may come to the same words by steps
   * that its client does not see: the key that stands for both is then a tombstone, and nothing of one is put back into
   * the other.
   */
  async #noteSaid(content: readonly Block[]): Promise<void> {
    if (this.#visible.length === 0 || content.some((block) => block.value['type'] === 'tool_use')) return;
    const { scope, value } = this.#request;
    const key = answerKey(scope, chained(chainOf(value), { role: 'assistant', content: this.#visible }), undefined);
    await this.#store(key, { ...NOTHING, before: '[]' });
  }

  async #store(key: string, record: Omit<ConversationRecord, 'author'>): Promise<boolean> {
    const { state, report } = this.#services;
    report.count('stateStores');
    try {
      await state.store(key, { author: this.#request.author, ...record });
      return true;
    } catch (error) {
      report.count('stateStoreFailures');
      report.error(
        'storage_failed',
        this.requestId,
        { tool_use_ids: record.toolUseIds, chars: record.before.length + record.content.length },
        error,
      );
      return false;
    }
  }
}

/** The container that the upstream runs code in, where an answer names one. */
export const containerOf = (value: unknown): string | undefined => {
  const { id } = fieldsOf(value);
  return typeof id === 'string' ? id : undefined;
};
