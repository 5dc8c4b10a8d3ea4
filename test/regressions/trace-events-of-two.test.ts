// Was: what a call asks for itself (`terms`) was one object for the caller's stream and the trace, so that the one
// could change what the other is told. Now: the trace has a copy.
import { lastValueFrom, tap } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway, tool, type TraceEvent } from 'spillway';

it('R-7.1 who changes an event of its own stream changes nothing of the trace', async () => {
  const spillway = createSpillway({
    tools: [tool({ name: 'read', policy: { effects: 'read' }, execute: () => 'ok' })],
  });
  const told: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => told.push(event));
  const change = tap((event: object) => {
    for (const part of Object.values(event))
      if (typeof part === 'object') Object.assign(part, { timeoutMs: -1, key: 'mine' });
  });
  await lastValueFrom(spillway.call({ toolName: 'read', timeoutMs: 700 }).pipe(change));
  const started = told.find(({ type }) => type === 'call_started');
  expect(started).toMatchObject({ terms: { timeoutMs: 700 }, breaker: { key: 'read' } });
});
