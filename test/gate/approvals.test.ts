import { EMPTY, NEVER, Subject, of, throwError } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';
import { createApprovals, type ApprovalAnswer } from 'spillway/gates';
import { describe, expect, it } from 'vitest';
import { scene, typed } from './kit.ts';

describe('needsApproval', () => {
  it('R-22.1 a call waits until a person has approved it, and runs once', async () => {
    const answer$ = new Subject<ApprovalAnswer>();
    const at = scene({ approvals: { ask: () => answer$ } });
    const call = at.pay({ session: 's1', tenant: 't1', actor: 'ada' });
    await at.pass(60_000);
    expect([at.runs, call.result]).toEqual([[], undefined]);
    expect(at.asked).toMatchObject([
      {
        toolName: 'pay',
        input: { amount: 7 },
        cause: 'needed',
        session: 's1',
        tenant: 't1',
        actor: 'ada',
        effects: 'mutating',
      },
    ]);
    answer$.next({ approved: true, by: 'grace' });
    await at.pass(0);
    expect(call.result).toMatchObject({ status: 'success', attempts: 1, output: { content: 'paid' } });
    expect(at.runs).toHaveLength(1);
    expect(typed(at.trace, 'approval')).toMatchObject([
      { step: 'asked', cause: 'needed', approvalId: at.asked[0]?.id },
      { step: 'approved', by: 'grace', waitedMs: 60_000 },
    ]);
    expect(await at.approvals.pending()).toEqual([]);
    await at.spillway.close();
    await at.store.close?.();
    expect(at.runtime.pending).toBe(0);
  });

  it('R-22.1 a no is not_permitted, permanent and not executed, and the model is told whose it is', async () => {
    const at = scene({ approvals: { ask: () => of({ approved: false, by: 'grace', reason: 'not on Fridays.' }) } });
    const call = at.pay();
    await at.pass(0);
    expect(call.result).toMatchObject({
      status: 'error',
      attempts: 0,
      error: { code: 'not_permitted', terminal: true },
    });
    expect(call.result?.error?.modelText).toBe(
      'A person was asked about this call and did not approve it, so it was not made. ' +
        'They said: "not on Fridays.". Do not try again unless you are asked to.',
    );
    expect(call.result?.error?.uncertain).toBeUndefined();
    expect(at.runs).toEqual([]);
    expect(typed(at.trace, 'approval').map(({ step }) => step)).toEqual(['asked', 'denied']);
  });

  it('R-22.1 a denial answers one request: the next call asks anew', async () => {
    const answers = [false, true];
    const at = scene({ approvals: { ask: () => answers.shift() ?? false } });
    const first = at.pay();
    await at.pass(0);
    const second = at.pay();
    await at.pass(0);
    expect([first.result?.status, second.result?.status]).toEqual(['error', 'success']);
    expect(new Set(at.asked.map(({ id }) => id)).size).toBe(2);
  });

  it.each([
    ['a word', () => 'yes'],
    ['nothing', () => of(undefined)],
    ['null', () => of(null)],
    ['a number', () => 1],
    ['an answer with a word for approved', () => ({ approved: 'true' })],
    ['an answer with more in it', () => ({ approved: true, amount: 9 })],
    ['a name that is none', () => ({ approved: true, by: 7 })],
    ['a list', () => [true]],
    [
      'a throw',
      () => {
        throw new Error('no channel');
      },
    ],
    ['a stream that errors', () => throwError(() => new Error('no channel'))],
    ['a rejection', () => Promise.reject(new Error('no channel'))],
  ])('R-22.1 %s is no approval, and the call is refused', async (_what, ask) => {
    const at = scene({ approvals: { ask: ask as () => ApprovalAnswer } });
    const call = at.pay();
    await at.pass(0);
    expect(call.result).toMatchObject({ status: 'error', error: { code: 'not_permitted', terminal: true } });
    expect(at.runs).toEqual([]);
    expect(await at.approvals.pending()).toEqual([]);
  });

  it('R-22.1 without approvals each such call is refused, and nothing else is', async () => {
    const runs: unknown[] = [];
    const execute = (input: unknown): string => String(runs.push(input));
    const free = tool({ name: 'free', policy: { effects: 'read' }, execute });
    const pay = tool({ name: 'pay', needsApproval: (_: unknown) => false, policy: { effects: 'mutating' }, execute });
    const spillway = createSpillway({ tools: [free, pay] });
    expect(await spillway.execute({ toolName: 'pay' })).toMatchObject({
      error: { code: 'not_permitted' },
      attempts: 0,
    });
    expect(await spillway.execute({ toolName: 'free' })).toMatchObject({ status: 'success' });
    expect(spillway.warnings.filter((line) => line.includes('approval'))).toHaveLength(1);
    expect(runs).toHaveLength(1);
  });

  it.each(['off', 'shadow'] as const)('R-22.1 holds in the mode %s, too: it is the host’s', async (mode) => {
    const at = scene({ mode, approvals: { ask: () => false } });
    const call = at.pay();
    await at.pass(0);
    expect(call.result?.error?.code).toBe('not_permitted');
    expect(at.runs).toEqual([]);
  });

  it('R-22.1 a function of the input decides; one that fails or hangs counts as yes', async () => {
    const rule = (input: unknown): boolean => (input as { amount: number }).amount > 100;
    const small = scene({ tool: { needsApproval: rule }, approvals: { ask: () => false } });
    const paid = small.pay();
    const large = small.pay({ input: { amount: 101 } });
    await small.pass(0);
    expect([paid.result?.status, large.result?.error?.code]).toEqual(['success', 'not_permitted']);
    const fails = [
      () => {
        throw new Error('x');
      },
      () => NEVER,
      () => EMPTY,
      () => 'no',
      () => Promise.reject(new Error('x')),
    ];
    for (const needsApproval of fails as ReadonlyArray<() => unknown> as ReadonlyArray<() => boolean>) {
      const at = scene({ tool: { needsApproval }, approvals: { ask: () => false } });
      const call = at.pay();
      await at.pass(15_000);
      expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
    }
  });

  it('R-22.1 a policy and a node can ask for it, too', async () => {
    const byPolicy = scene({
      tool: { needsApproval: false, policy: { effects: 'mutating', needsApproval: true } },
      approvals: { ask: () => false },
    });
    const call = byPolicy.pay();
    await byPolicy.pass(0);
    expect(call.result?.error?.code).toBe('not_permitted');
    const byNode = scene({ tool: { needsApproval: false }, approvals: { ask: () => true } });
    const needsApproval = ({ amount }: { readonly amount: number }): boolean => amount > 0;
    const turn = plan.from([
      { id: 'a', tool: 'pay', input: { amount: 1 }, needsApproval },
      { id: 'b', tool: 'pay', input: { amount: 2 } },
    ]);
    byNode.spillway.turn(turn).subscribe();
    await byNode.pass(0);
    expect(byNode.asked).toMatchObject([{ nodeId: 'a', input: { amount: 1 } }]);
    expect(byNode.asked[0]?.turnId).toBeDefined();
    expect(byNode.runs).toHaveLength(2);
  });

  it.each([
    ['a tool', () => createSpillway({ tools: [{ name: 'x', execute: () => 1, needsApproval: 'yes' as never }] })],
    [
      'a policy',
      () => createSpillway({ tools: [{ name: 'x', execute: () => 1, policy: { needsApproval: 1 as never } }] }),
    ],
    ['a node', () => plan.from([{ id: 'a', tool: 'x', needsApproval: {} as never }])],
    ['ask', () => createApprovals({ ask: 'slack' as never })],
    ['ttlMs', () => createApprovals({ ttlMs: 0 })],
    ['pollMs', () => createApprovals({ pollMs: Number.NaN })],
    ['an unknown option', () => createApprovals({ ttl: 5 } as never)],
  ])('R-22.1 bad options are refused: %s', (_what, make) => {
    expect(make).toThrow(/must be|has no option/);
  });
});
