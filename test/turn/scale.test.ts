import { createSpillway, plan, type Plan, type PlanNode, type Tool, type TurnResult } from 'spillway';
import { describe, expect, it } from 'vitest';

const NODES = 100_000;
/** Generous: it takes a few seconds, and a quadratic one would take minutes. */
const BOUND_MS = 120_000;

const counter = {
  name: 'sync',
  execute: (input: unknown) => (Array.isArray(input) ? input.length : Number(input ?? 0) + 1),
};
const later = { name: 'async', execute: (input: unknown) => Promise.resolve(counter.execute(input)) };
const previous =
  (id: string) =>
  (values: Readonly<Record<string, unknown>>): unknown =>
    values[id];

const shapes: Readonly<Record<string, (tool: Tool) => readonly PlanNode[]>> = {
  chain: (tool) =>
    Array.from({ length: NODES }, (_, i) =>
      i === 0 ? { id: 'n0', tool } : { id: `n${i}`, tool, needs: [`n${i - 1}`], input: previous(`n${i - 1}`) },
    ),
  'chain, written backwards': (tool) =>
    Array.from({ length: NODES }, (_, i) =>
      i === NODES - 1
        ? { id: `n${i}`, tool }
        : { id: `n${i}`, tool, needs: [`n${i + 1}`], input: previous(`n${i + 1}`) },
    ),
  'fan-out': (tool) =>
    Array.from({ length: NODES }, (_, i) => (i === 0 ? { id: 'n0', tool } : { id: `n${i}`, tool, needs: ['n0'] })),
  'fan-in': (tool) => [
    ...Array.from({ length: NODES - 1 }, (_, i) => ({ id: `n${i}`, tool })),
    {
      id: 'last',
      tool,
      needs: Array.from({ length: NODES - 1 }, (_, i) => `n${i}`),
      input: (values: object) => Object.keys(values).map(() => 0),
    },
  ],
};

const settle = (planned: Plan): Promise<TurnResult> =>
  new Promise((resolve) => {
    createSpillway({})
      .turn(planned)
      .subscribe((event) => {
        if (event.source === 'turn' && event.type === 'settled') resolve(event.result);
      });
  });

describe('R-5.2 a hundred thousand nodes', () => {
  const cases = Object.keys(shapes).flatMap((shape) =>
    (shape.includes('backwards') ? [counter] : [counter, later]).map((tool) => [shape, tool.name, tool] as const),
  );
  it.each(cases)(
    'R-5.2 a %s of %s tools finishes',
    async (shape, _name, tool) => {
      const result = await settle(plan.from(shapes[shape]?.(tool) ?? [], { timeoutMs: BOUND_MS }));
      expect(result).toMatchObject({ status: 'completed', executedTools: NODES });
      expect(result.nodes).toHaveLength(NODES);
      if (shape === 'chain') expect(result.values[`n${NODES - 1}`]).toBe(NODES);
      if (shape === 'fan-in') expect(result.values['last']).toBe(NODES - 1);
    },
    BOUND_MS,
  );

  it(
    'R-5.3 a failure that skips a chain of them overflows nothing',
    async () => {
      const broken = {
        name: 'broken',
        policy: { retry: { maxAttempts: 1 } },
        execute: () => Promise.reject(new Error('Not found (404)')),
      };
      const [, ...rest] = shapes['chain']?.(counter) ?? [];
      const result = await settle(plan.from([{ id: 'n0', tool: broken }, ...rest]));
      expect(result).toMatchObject({ status: 'escalated', executedTools: 1 });
      expect(result.nodes.at(-1)).toMatchObject({ state: 'skipped' });
    },
    BOUND_MS,
  );

  it(
    'R-5.2 a chain under a concurrency limit, with a trace',
    async () => {
      const layer = createSpillway({});
      let [events, faults] = [0, 0];
      // The trace greets each subscriber with the layer and its policies: that is number 0.
      layer.trace$.subscribe(({ seq }) => {
        if (seq !== events++) faults++;
      });
      const seen = await new Promise((resolve) => {
        layer
          .turn(plan.from(shapes['chain']?.(counter) ?? [], { concurrency: 1 }))
          .subscribe((event) => event.source === 'turn' && event.type === 'settled' && resolve(event.result.status));
      });
      expect([seen, faults]).toStrictEqual(['completed', 0]);
      expect(events).toBe(6 * NODES + 3);
    },
    BOUND_MS,
  );

  it(
    'R-5.2 a turn of them started inside the next of another',
    async () => {
      const layer = createSpillway({});
      const chain = plan.from(shapes['chain']?.(counter) ?? []);
      const statuses: string[] = [];
      await new Promise<void>((resolve) => {
        layer.turn(plan.from([{ id: 'n', tool: counter }])).subscribe((event) => {
          if (event.type !== 'attempt_started') return;
          layer.turn(chain).subscribe({
            next: (inner) => inner.source === 'turn' && inner.type === 'settled' && statuses.push(inner.result.status),
            complete: resolve,
          });
        });
      });
      expect(statuses).toStrictEqual(['completed']);
    },
    BOUND_MS,
  );
});
