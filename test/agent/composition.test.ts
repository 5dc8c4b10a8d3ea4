import { Subject, lastValueFrom, map, switchMap, toArray } from 'rxjs';
import { createSpillway, tool } from 'spillway';
import { evidenceFromTrace, runAgent, type AgentEvent, type AgentMessage } from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';
import { approvalsIn, createApprovals } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asked, resultOf, typed } from './kit.ts';

/** A machine may be busy. */

const question = (content: string): AgentMessage[] => [{ role: 'user', content }];

describe('R-12.3 a run is a stream like any other', () => {
  it('R-12.3 R-2.7 `switchMap` to the newest question ends the old one, its tools and its model', async () => {
    const signals = new Map<string, AbortSignal>();
    const look = tool({
      name: 'look',
      input: z.object({ at: z.string() }),
      execute: ({ at }, { signal }) => {
        signals.set(at, signal);
        return at === 'old' ? new Promise<string>(() => undefined) : `${at} found`;
      },
    });
    const spillway = createSpillway({ tools: [look] });
    const questions$ = new Subject<string>();
    const seen: (readonly [string, AgentEvent])[] = [];
    const answers = lastValueFrom(
      questions$.pipe(
        switchMap((at) => {
          const model = scriptedModel([{ calls: [{ name: 'look', input: { at } }] }, { text: `about ${at}` }]);
          return runAgent({ model, spillway, tools: [look], messages: question(at) }).pipe(
            map((event) => {
              seen.push([at, event]);
              return event;
            }),
          );
        }),
        toArray(),
      ),
    );
    questions$.next('old');
    await expect.poll(() => signals.has('old')).toBe(true);
    expect(signals.get('old')?.aborted).toBe(false);
    questions$.next('new');
    questions$.complete();
    const events = await answers;
    expect(signals.get('old')?.aborted).toBe(true);
    expect(signals.get('new')?.aborted).toBe(false);
    expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'about new' });
    const from = seen.findIndex(([at]) => at === 'new');
    expect(seen.slice(from).filter(([at]) => at === 'old')).toEqual([]);
    await spillway.close();
  });
});

describe('R-12.3 what was stored of a run that crashed', () => {
  it('R-12.3 a result that was told is not worked for again, though its message was never stored', async () => {
    let paid = 0;
    const pay = tool({
      name: 'pay',
      input: z.object({}),
      policy: { effects: 'mutating' },
      execute: () => `receipt ${++paid}`,
    });
    const spillway = createSpillway({ tools: [pay] });
    const script = [{ calls: [{ name: 'pay', input: {} }] }, { text: 'paid' }];
    const stored: AgentEvent[] = [];
    await new Promise<void>((resolve) => {
      const run = runAgent({ model: scriptedModel(script), spillway, tools: [pay], messages: asked }).subscribe(
        (event) => {
          stored.push(event);
          if (event.type !== 'tool_result') return;
          queueMicrotask(() => {
            run.unsubscribe();
            resolve();
          });
        },
      );
    });
    const upTo = stored.findIndex(({ type }) => type === 'tool_result') + 1;
    const kept = stored.slice(0, upTo);
    const messages = [...asked, ...typed(kept, 'message').map(({ message }) => message)];
    expect(messages.at(-1)?.role).toBe('assistant');
    const model = scriptedModel([{ text: 'paid' }]);
    const evidence = evidenceFromTrace(kept);
    const events = await lastValueFrom(runAgent({ model, spillway, tools: [pay], messages, evidence }).pipe(toArray()));
    expect(resultOf(events).status).toBe('completed');
    expect(JSON.stringify(resultOf(events).messages)).toContain('receipt 1');
    expect(paid).toBe(1);
    await spillway.close();
  });

  it('R-12.3 an approval given after the process died is found by the next run, and used once', async () => {
    const store = memoryStore();
    let moved = 0;
    const transfer = tool({
      name: 'transfer',
      input: z.object({ usd: z.number() }),
      policy: { effects: 'mutating' },
      needsApproval: true,
      execute: ({ usd }) => `moved ${usd}: ${++moved}`,
    });
    const script = [{ calls: [{ name: 'transfer', input: { usd: 500 } }] }, { text: 'done' }];
    const begin = () => {
      const questions: string[] = [];
      const approvals = createApprovals({
        ask: ({ id }) => {
          questions.push(id);
          return new Promise<never>(() => undefined);
        },
        pollMs: 5,
      });
      const spillway = createSpillway({ tools: [transfer], approvals, store });
      const run$ = runAgent({ model: scriptedModel(script), spillway, tools: [transfer], messages: asked });
      return { spillway, questions, run$ };
    };
    const first = begin();
    first.run$.subscribe();
    await expect.poll(() => first.questions).toHaveLength(1);
    // Its process ends without another word; the question stands.
    await first.spillway.close();
    expect(await approvalsIn(store).answer(first.questions[0] ?? '', true)).toMatchObject({ counts: true });
    const second = begin();
    const events = await lastValueFrom(second.run$.pipe(toArray()));
    expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'done' });
    expect([moved, second.questions]).toEqual([1, []]);
    const third = begin();
    third.run$.subscribe();
    await expect.poll(() => third.questions).toHaveLength(1);
    expect(moved).toBe(1);
    await Promise.all([second.spillway.close(), third.spillway.close()]);
  });
});
