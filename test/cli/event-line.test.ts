import { delay, lastValueFrom, of } from 'rxjs';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { expect, it } from 'vitest';
import { eventLine } from '../../src/cli/show/event-line.ts';
import type { ToolEvent } from '../../src/contract/event.ts';

const linesOf = (events: readonly TraceEvent[]): string[] =>
  events.flatMap((event) => (event.source === 'layer' ? [] : (eventLine(event) ?? [])));

it('R-15.2 a call that waited for hooks, that nothing guards, or of which something is presumed, says so', async () => {
  const bare = tool({ name: 'bare', execute: () => 'fine' });
  const off = tool({ name: 'off', policy: { effects: 'read', mode: 'off' }, execute: () => 'fine' });
  const layer = createSpillway({
    tools: [off],
    hooks: { beforeToolCall: () => lastValueFrom(of(undefined).pipe(delay(20))) },
  });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  await lastValueFrom(layer.turn(plan().call('a', bare, {}).call('b', off, {})));
  await layer.close();
  const lines = linesOf(events);
  expect(lines).toContain('a: is taken to be read: nothing says what it does to the world');
  expect(lines).toContain('b: is not guarded: its switch says off');
  expect(lines).toContainEqual(expect.stringMatching(/^a: waited \d+ ms for its hooks$/));
});

it('R-15.2 whose key was taken over, and what a call finds out about or undoes, is told', () => {
  const call = { seq: 1, atMs: 1, source: 'call', callId: 'c', toolName: 'pay' } as const;
  const told: ToolEvent[] = [
    { ...call, type: 'dedupe', step: 'taken_over', keyFingerprint: 'k', leaderCallId: 'dead\u001b[31m' },
    { ...call, type: 'call_started', verifies: 'doubtful' },
    { ...call, type: 'call_started', undoes: 'done' },
    { ...call, type: 'call_started' },
  ];
  expect(linesOf(told)).toEqual([
    'takes over from a call that lost its lease (dead)',
    'finds out about call doubtful',
    'undoes call done',
  ]);
});
