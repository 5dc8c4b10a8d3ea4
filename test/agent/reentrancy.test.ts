import { createSpillway, tool, ToolExecutionError, type AnyTool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import {
  repairTranscript,
  runAgent,
  scriptedModel,
  type AgentEvent,
  type AgentMessage,
  type ScriptedStep,
} from '../../src/agent/index.ts';
import { asked, typed } from './kit.ts';

const script: readonly ScriptedStep[] = [
  {
    text: 'One',
    calls: [
      { id: 'a', name: 'now', input: {} },
      { id: 'b', name: 'later', input: {} },
      { id: 'c', name: 'fails', input: {} },
    ],
  },
  { error: Object.assign(new Error('Overloaded'), { status: 529 }) },
  { text: 'Two', error: Object.assign(new Error('Overloaded'), { status: 529 }) },
  {
    calls: [
      { id: 'd', name: 'nobody', input: {} },
      { id: 'e', name: 'later', input: { $result: 'd' } },
    ],
  },
  { text: 'Three' },
];

/** A run whose listener does something at its `at`th event, from inside it. */
const disturbed = async (
  at: number,
  disturb: (stop: { readonly abort: () => void; readonly unsubscribe: () => void }) => void,
): Promise<{ readonly events: AgentEvent[]; readonly pending: number }> => {
  const runtime = virtualRuntime({ seed: 3 });
  const tools: AnyTool[] = [
    tool({ name: 'now', execute: () => 'now' }),
    tool({ name: 'later', execute: () => runtime.after(20) }),
    tool({
      name: 'fails',
      policy: { retry: { maxAttempts: 2 } },
      execute: () => Promise.reject(new ToolExecutionError('transport_error', 'no', { executed: false })),
    }),
  ];
  const controller = new AbortController();
  const events: AgentEvent[] = [];
  let isOut = false;
  const subscription = runAgent({
    model: scriptedModel(script),
    spillway: createSpillway({ tools, runtime }),
    tools,
    messages: asked,
    signal: controller.signal,
    runtime,
  }).subscribe((event) => {
    events.push(event);
    // What comes in the very call of subscribe has no subscription to end yet.
    if (events.length === at) disturb({ abort: () => controller.abort(), unsubscribe: () => (isOut = true) });
    if (isOut) queueMicrotask(() => subscription.unsubscribe());
  });
  await runtime.run();
  return { events, pending: runtime.pending };
};

const transcript = (events: readonly AgentEvent[]): AgentMessage[] => [
  ...asked,
  ...typed(events, 'message').map(({ message }) => message),
];

describe('R-12.3 a listener that acts on what it hears', () => {
  it('R-12.3 a signal aborted at any event: one end, every call answered, no timer left', async () => {
    const { events: whole } = await disturbed(0, () => undefined);
    expect(whole.at(-1)).toMatchObject({ type: 'settled', result: { status: 'completed', text: 'Three' } });
    for (let at = 1; at < whole.length; at++) {
      const { events, pending } = await disturbed(at, ({ abort }) => abort());
      expect(typed(events, 'settled'), `aborted at event ${at}`).toHaveLength(1);
      const last = events.at(-1);
      expect(last, `aborted at event ${at}`).toMatchObject({
        type: 'settled',
        result: { status: 'canceled', messages: transcript(events) },
      });
      expect(repairTranscript(transcript(events)).repairs).toStrictEqual([]);
      expect(pending).toBe(0);
    }
  });

  it('R-12.3 unsubscribed after any event: nothing follows, and what was stored can be gone on with', async () => {
    const { events: whole } = await disturbed(0, () => undefined);
    for (let at = 1; at < whole.length; at++) {
      const { events, pending } = await disturbed(at, ({ unsubscribe }) => unsubscribe());
      const { messages, repairs } = repairTranscript(transcript(events));
      expect(repairs.every(({ type }) => type === 'answered')).toBe(true);
      expect(repairTranscript(messages).repairs).toStrictEqual([]);
      expect(pending, `unsubscribed after event ${at}`).toBe(0);
    }
  });
});
