import Anthropic from '@anthropic-ai/sdk';
import { createSpillway, tool, ToolExecutionError, type AnyTool } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { anthropicModel } from '../../src/agent/anthropic.ts';
import { runAgent, type AgentEvent, type AgentMessage, type AgentResult } from '../../src/agent/index.ts';
import { seededRandom } from '../../src/policy/random.ts';
import {
  messagesServer,
  streamed,
  type Answer,
  type Block,
  type MessagesServer,
  type WireRequest,
} from './messages-server.ts';

const TRANSCRIPTS = 200;
/** Transcripts that run at a time. */
const BATCH = 50;
const SEED = 20_261_121;
const SECRET = 'token=s3cr3t';

let server: MessagesServer;
beforeAll(async () => {
  server = await messagesServer();
});
afterAll(() => server.close());

/** Chance of one transcript, and what it met. */
class Dice {
  readonly #random: () => number;
  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }
  upTo(max: number): number {
    return Math.floor(this.#random() * max);
  }
  may(share: number): boolean {
    return this.#random() < share;
  }
  one<T>(list: readonly [T, ...T[]]): T {
    return list[this.upTo(list.length)] ?? list[0];
  }
}

const met = new Map<string, number>();
const meet = (what: string): void => void met.set(what, (met.get(what) ?? 0) + 1);

const once = { retry: { maxAttempts: 1 } } as const;
const tools = (dice: Dice): AnyTool[] => [
  tool({ name: 'good', input: z.object({ n: z.unknown() }), execute: ({ n }) => ({ n, items: ['a', 'b'] }) }),
  tool({ name: 'quiet', execute: () => dice.one<unknown>([undefined, '', ' ', null]) }),
  tool({ name: 'server.dotted', execute: () => 'x'.repeat(dice.upTo(400)) }),
  tool({ name: 'throws', policy: once, execute: () => Promise.reject(new Error(`${SECRET} ECONNRESET`)) }),
  tool({
    name: 'says',
    policy: once,
    execute: () =>
      Promise.reject(
        new ToolExecutionError('execution_error', SECRET, {
          status: 409,
          safeMessage: dice.one(['No seats left', '']),
        }),
      ),
  }),
  tool({ name: 'hangs', policy: { ...once, timeoutMs: 15 }, execute: () => new Promise(() => undefined) }),
  tool({ name: 'stuck', execute: () => new Promise(() => undefined) }),
  tool({
    name: 'lost',
    policy: { ...once, effects: 'mutating' },
    execute: () => Promise.reject(new ToolExecutionError('transport_error', SECRET, { uncertain: true })),
  }),
];
const NAMES = [
  'good',
  'good',
  'good',
  'quiet',
  'server_dotted',
  'throws',
  'says',
  'hangs',
  'stuck',
  'lost',
  'nobody',
  'tool_output',
] as const;

let ids = 0;
const toolUse = (dice: Dice, earlier: readonly string[]): Block => {
  const repeated = earlier.length > 0 && dice.may(0.1);
  const id = repeated
    ? dice.one(earlier as [string])
    : dice.may(0.05)
      ? ''
      : dice.may(0.1)
        ? 'always_the_same'
        : `toolu_${++ids}`;
  const refers = earlier.length > 0 && dice.may(0.15);
  const input = {
    n: refers
      ? { $result: dice.one(earlier as [string]), ...(dice.may(0.3) ? { path: dice.one(['items.0', 'nothing']) } : {}) }
      : dice.upTo(3),
  };
  const json = dice.may(0.1)
    ? dice.one(['{"n": ', '{"n": 1,}', 'nonsense'])
    : JSON.stringify(dice.may(0.1) ? { m: 1 } : input);
  if (repeated) meet('an id twice in a step');
  if (refers) meet('a reference');
  return { type: 'tool_use', id, name: dice.one(NAMES), input: {}, json };
};

const answer = (dice: Dice): Answer => {
  const failure = (status: number, type: string, headers: Record<string, string> = {}): Answer => {
    meet(`status ${status}`);
    return { status, headers, body: { type: 'error', error: { type, message: 'not now' } } };
  };
  if (dice.may(0.04)) return failure(529, 'overloaded_error');
  if (dice.may(0.04)) return failure(429, 'rate_limit_error', { 'retry-after-ms': '2' });
  if (dice.may(0.01)) return failure(400, 'invalid_request_error');
  const blocks: Block[] = [];
  if (dice.may(0.4)) blocks.push({ type: 'thinking', thinking: 'Hm.', signature: `sig-${dice.upTo(1_000)}` });
  if (dice.may(0.5)) blocks.push({ type: 'text', text: dice.one(['Let me see.', ' ', 'One\ntwo']) });
  if (dice.may(0.1))
    blocks.push(
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    );
  const calls = dice.may(0.2) ? 0 : 1 + dice.upTo(dice.may(0.1) ? 12 : 4);
  const given: string[] = [];
  for (let place = 0; place < calls; place++) {
    const use = toolUse(dice, given);
    blocks.push(use);
    if (use['id'] !== '') given.push(String(use['id']));
  }
  const pausing = blocks.some(({ type }) => type === 'server_tool_use') ? 'pause_turn' : 'end_turn';
  const stop =
    calls === 0
      ? dice.one(['end_turn', 'max_tokens', pausing, pausing, 'refusal'])
      : dice.may(0.05)
        ? 'max_tokens'
        : 'tool_use';
  const events = streamed(blocks, stop, 1 + dice.upTo(3));
  if (stop === 'pause_turn') meet('a pause');
  if (dice.may(0.08)) {
    meet('broken off');
    return [
      ...events.slice(0, 1 + dice.upTo(events.length - 1)),
      dice.may(0.5) ? undefined : { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    ];
  }
  return events;
};

/** Runs until it settles, is canceled, or its process dies; gives what had been stored by then. */
const session = (
  dice: Dice,
  place: number,
  messages: readonly AgentMessage[],
  offered: readonly AnyTool[],
): Promise<{ readonly messages: readonly AgentMessage[]; readonly result?: AgentResult }> =>
  new Promise((resolve, reject) => {
    const stored: AgentMessage[] = [...messages];
    const controller = new AbortController();
    const end = dice.one(['settle', 'settle', 'settle', 'abort', 'crash', 'time'] as const);
    // By events and not by time, which depends on the machine.
    let left = end === 'abort' || end === 'crash' ? 2 + dice.upTo(40) : Infinity;
    const model = anthropicModel(new Anthropic({ apiKey: 'none', baseURL: server.url }), {
      model: 'claude-test',
      max_tokens: 100,
      metadata: { user_id: String(place) },
    });
    const subscription = runAgent({
      model,
      spillway: createSpillway({ tools: offered }),
      tools: offered,
      messages,
      signal: controller.signal,
      modelRetry: { initialDelayMs: 1 },
      turn: { timeoutMs: 40, onDeadline: dice.one(['detach', 'abort']) },
      limits: { turns: 5, outputChars: 100, ...(end === 'time' ? { timeMs: 20 + dice.upTo(60) } : {}) },
    }).subscribe({
      next: (event: AgentEvent) => {
        if (--left === 0) queueMicrotask(cut);
        if (event.type === 'message') stored.push(event.message);
        if (event.type === 'repaired') meet('a repair');
        if (event.type === 'tool_result') meet(event.kind ?? 'success');
        if (event.type === 'settled') {
          meet(`settled ${event.result.status}`);
          resolve({ messages: event.result.messages, result: event.result });
        }
      },
      error: reject,
    });
    const cut = (): void => {
      if (end === 'abort') controller.abort();
      if (end !== 'crash' || subscription.closed) return;
      meet('a crash');
      subscription.unsubscribe();
      resolve({ messages: stored });
    };
  });

describe('R-12.3 what is sent to the Messages API', () => {
  it(`R-12.3 ${TRANSCRIPTS} random transcripts with faults: every request is valid by the API's rules (seed ${SEED})`, async () => {
    const dice = Array.from({ length: TRANSCRIPTS }, (_, place) => new Dice(SEED + place));
    server.answer((request: WireRequest) =>
      answer(dice[Number((request['metadata'] as { user_id: string }).user_id)] ?? new Dice(0)),
    );
    const one = async (own: Dice, place: number): Promise<void> => {
      const offered = tools(own);
      let messages: readonly AgentMessage[] = [{ role: 'user', content: `Transcript ${place}` }];
      for (let sessions = 1 + own.upTo(3); sessions > 0; sessions--) {
        const ended = await session(own, place, messages, offered);
        const { result } = ended;
        if (result?.hadToolFailure === true) expect(Object.keys(result.toolFailureKinds).length).toBeGreaterThan(0);
        if (result !== undefined)
          expect(new Set(result.executedToolCallIds).size).toBe(result.executedToolCallIds.length);
        // What is stored is JSON, and comes back as it was.
        messages = [
          ...(JSON.parse(JSON.stringify(ended.messages)) as AgentMessage[]),
          { role: 'user', content: own.one(['Go on', 'And?', ' ']) },
          { role: 'user', content: 'Please' },
        ];
      }
    };
    for (let at = 0; at < TRANSCRIPTS; at += BATCH)
      await Promise.all(dice.slice(at, at + BATCH).map((own, place) => one(own, at + place)));
    expect(server.faults).toStrictEqual([]);
    expect(server.requests.length).toBeGreaterThan(TRANSCRIPTS * 3);
    expect(JSON.stringify(server.requests)).not.toContain(SECRET);
    const everything = [
      'success',
      'execution_error',
      'timeout',
      'transport_error',
      'unknown_tool',
      'invalid_parameters',
      'limit_exceeded',
      'canceled',
      'dependency_failed',
      'duplicate_in_flight',
      'a repair',
      'a pause',
      'a crash',
      'broken off',
      'status 529',
      'status 429',
      'status 400',
      'an id twice in a step',
      'a reference',
      'settled completed',
      'settled canceled',
      'settled limit',
      'settled failed',
    ];
    expect(
      everything.filter((what) => !met.has(what)),
      'a fault that never happened proves nothing',
    ).toStrictEqual([]);
  });
});
