// Was: a `default` on a node without needs was accepted in JavaScript and in plan files, and did nothing.
// Now: it is refused as the types refuse it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PlanError, plan, tool, type PlanNode } from 'spillway';
import { loadPlan } from '../../src/cli/plan/file.ts';

const read = tool({ name: 'read', policy: { effects: 'read' }, execute: () => 'text' });

const refusal = (make: () => unknown): PlanError => {
  try {
    make();
  } catch (error) {
    if (error instanceof PlanError) return error;
    throw error;
  }
  throw new Error('the plan was not refused');
};

describe('R-5.3 a default that could never act is refused', () => {
  it.each<readonly [string, () => unknown]>([
    [
      'chained',
      () =>
        plan()
          .call('first', read, {})
          .call('book', read, {}, { optional: true, default: 'none' as never }),
    ],
    [
      'of nodes',
      () =>
        plan.from([
          { id: 'first', tool: read },
          { id: 'book', tool: read, default: 'none' },
        ]),
    ],
    ['of nodes with an empty list of needs', () => plan.from([{ id: 'book', tool: read, needs: [], default: null }])],
  ])('R-5.3 %s', (_how, make) => {
    const error = refusal(make);
    expect(error).toMatchObject({ rule: 'default_without_needs', nodes: ['book'] });
    expect(error.message).toBe(
      'Node book has a default and needs nothing, so its default could never stand in for anything. Put the default on a node that needs book, or remove it.',
    );
  });

  it('R-5.3 one with needs is taken, as is one that is undefined', () => {
    const nodes: readonly PlanNode[] = [
      { id: 'first', tool: read, default: undefined },
      { id: 'book', tool: read, needs: ['first'], default: 'none' },
    ];
    expect(plan.from(nodes).nodes).toHaveLength(2);
    expect(
      plan()
        .call('first', read, {})
        .call('book', read, {}, { needs: ['first'], default: 'none' }).nodes,
    ).toHaveLength(2);
  });

  it('R-5.3 in a plan file, at its place', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-plan-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'plan.yaml');
    writeFileSync(
      path,
      'servers: { s: { command: x } }\nturn:\n  nodes:\n    - { id: first, tool: s.x }\n    - { id: book, tool: s.x, default: none }\n',
    );
    await expect(loadPlan(path)).rejects.toThrow(
      /plan\.yaml:5:\d+: turn\.nodes\[1\]\.default: Node book has a default and needs nothing, .*Put the default on a node that needs book, or remove it\./,
    );
  });
});
