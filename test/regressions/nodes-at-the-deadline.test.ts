// Was: a result at the very instant of the deadline counted, but the nodes that it made ready were started,
// too. Now: the result counts, and nothing new starts.
import { expect, it } from 'vitest';
import type { TurnEvent } from '../../src/contract/event.ts';
import { createSpillway } from '../../src/spillway.ts';
import { scriptedTool } from '../../src/testing/scripted-tool.ts';
import { virtualRuntime } from '../../src/testing/virtual-runtime.ts';
import { plan } from '../../src/turn/plan.ts';

it('DL-1 a result at the deadline counts, and what needs it does not start any more', async () => {
  const runtime = virtualRuntime();
  const search = scriptedTool({ name: 'search', script: [{ afterMs: 50, value: 'found' }] }, runtime.scheduler);
  const book = scriptedTool({ name: 'book', script: [{ afterMs: 5, value: 'booked' }] }, runtime.scheduler);
  const spillway = createSpillway({ tools: [search, book], runtime });
  const events: TurnEvent[] = [];
  spillway
    .turn(
      plan.from(
        [
          { id: 'search', tool: 'search' },
          { id: 'book', tool: 'book', needs: ['search'], default: 'none' },
        ],
        { timeoutMs: 50 },
      ),
    )
    .subscribe((event) => events.push(event));
  await runtime.run();
  expect(events.flatMap((event) => (event.type === 'attempt_started' ? [event.toolName] : []))).toStrictEqual([
    'search',
  ]);
  const last = events.at(-1);
  expect(
    last?.source === 'turn' && last.type === 'settled' ? last.result.nodes.map(({ state }) => state) : [],
  ).toStrictEqual(['succeeded', 'timed_out']);
  expect(runtime.pending).toBe(0);
});
