import { approvalsIn } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { scene, silent, typed } from './kit.ts';

describe('in the store', () => {
  it('R-22.5 a question outlives its process, and its answer is found by the next', async () => {
    const at = scene();
    at.pay({ session: 's' });
    await at.pass(0);
    await at.spillway.close();
    const elsewhere = approvalsIn(at.store, at.runtime);
    const [asked] = await elsewhere.pending();
    expect(asked).toMatchObject({ toolName: 'pay', session: 's', input: { amount: 7 } });
    expect(await elsewhere.answer(asked?.id ?? '', { approved: true, by: 'grace' })).toMatchObject({ counts: true });
    const next = scene({ runtime: at.runtime, store: at.store, approvals: { ask: () => false } });
    const call = next.pay({ session: 's' });
    await next.pass(0);
    expect([call.result?.status, next.runs.length, next.asked]).toEqual(['success', 1, []]);
    expect(typed(next.trace, 'approval')).toMatchObject([{ step: 'approved', by: 'grace' }]);
  });

  it('R-22.5 a question that a process left behind is asked again by the next, under the same id', async () => {
    const at = scene({ approvals: { ask: silent } });
    at.pay();
    await at.pass(0);
    await at.spillway.close();
    const next = scene({ runtime: at.runtime, store: at.store, approvals: { ask: () => true } });
    const call = next.pay();
    await next.pass(0);
    expect(call.result?.status).toBe('success');
    expect(next.asked[0]?.id).toBe(at.asked[0]?.id);
  });

  it('R-22.5 a process that dies while it waits leaves no doubt under the key', async () => {
    const at = scene({ tool: { policy: { effects: 'mutating', safetyCritical: true } } });
    at.pay({ idempotencyKey: 'k', session: 's' });
    await at.pass(0);
    // It is killed: nothing of it is said or done any more, and its lease, had it one, runs out.
    const [asked] = await at.approvals.pending();
    await at.approvals.answer(asked?.id ?? '', true);
    const next = scene({
      runtime: at.runtime,
      store: at.store,
      tool: { policy: { effects: 'mutating', safetyCritical: true } },
    });
    const call = next.pay({ idempotencyKey: 'k', session: 's' });
    await next.pass(0);
    expect(call.result?.status).toBe('success');
    expect(at.runs.length + next.runs.length).toBe(1);
  });

  it('R-22.5 whoever answers sees the input without secrets, and so does the trace', async () => {
    const at = scene({ redact: { secrets: ['hunter2!'] } });
    at.pay({ input: { amount: 7, password: 'x9', note: 'say hunter2! to them' } });
    await at.pass(0);
    const [asked] = await at.approvals.pending();
    expect(asked?.input).toEqual({ amount: 7, password: '[redacted]', note: 'say [redacted] to them' });
    await at.approvals.answer(asked?.id ?? '', { approved: false, reason: 'hunter2! was in it' });
    await at.pass(1_000);
    expect(JSON.stringify(at.trace)).not.toContain('hunter2');
    const kept: unknown[] = [];
    for await (const record of at.store.byTool('spillway/approval')) kept.push(record);
    expect(JSON.stringify(kept)).not.toMatch(/x9|say hunter2/);
  });

  it('R-11.4 what a person said is told without secrets: to the host, the model and the trace', async () => {
    const secret = 'sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
    const said = { approved: false, by: `Grace ${secret}`, reason: `the key ${secret} is not for this` };
    const at = scene({ approvals: { ask: () => said } });
    const call = at.pay();
    await at.pass(0);
    expect(call.result?.error?.message).toBe(
      'Grace [redacted] did not approve the call: the key [redacted] is not for this',
    );
    expect(JSON.stringify([call.result, at.trace])).not.toContain(secret);
  });

  it('R-22.5 a store that is gone for a while costs nobody their answer', async () => {
    const runtime = virtualRuntime();
    const kept = memoryStore({ runtime });
    let isGone = false;
    const { changes: _, ...rest } = kept;
    const get: typeof kept.get = (key) => (isGone ? Promise.reject(new Error('gone')) : kept.get(key));
    const at = scene({ runtime, store: { ...rest, get } });
    const call = at.pay();
    await at.pass(2_000);
    isGone = true;
    await at.pass(30_000);
    expect(call.result).toBeUndefined();
    isGone = false;
    const [asked] = await at.approvals.pending();
    await at.approvals.answer(asked?.id ?? '', true);
    await at.pass(2_000);
    expect(call.result?.status).toBe('success');
  });

  it('R-22.5 of a long input a person sees that it is cut, and the hash is of all of it', async () => {
    const at = scene();
    const long = (end: string) => ({ pages: Array.from({ length: 60 }, () => 'x '.repeat(2_000)).concat(end) });
    at.pay({ input: long('a') });
    at.pay({ input: long('b') });
    await at.pass(0);
    expect((await at.approvals.pending()).map(({ input }) => input)).toEqual(['[cut]', '[cut]']);
  });

  it('R-22.5 forgetting the results of a session or a tool takes no question with it', async () => {
    const at = scene();
    at.pay({ session: 's' });
    await at.pass(0);
    await at.spillway.flush({ session: 's' });
    await at.spillway.flush({ all: true });
    expect(await at.approvals.pending()).toHaveLength(1);
  });

  it('R-22.5 a no can become a yes until the call has heard it, and an answer is checked', async () => {
    const at = scene();
    at.pay();
    await at.pass(0);
    await at.spillway.close();
    const [{ id } = { id: '' }] = await at.approvals.pending();
    expect(await at.approvals.answer(id, false)).toMatchObject({ counts: true, state: 'denied' });
    expect(await at.approvals.answer(id, true)).toMatchObject({ counts: true, state: 'approved' });
    expect(await at.approvals.answer(id, true)).toMatchObject({ counts: false, state: 'approved' });
    expect(await at.approvals.answer('nonsense', true)).toEqual({ counts: false, state: 'unknown' });
    await expect(at.approvals.answer(id, 'yes' as never)).rejects.toThrow(RangeError);
    const next = scene({ runtime: at.runtime, store: at.store });
    const call = next.pay();
    await next.pass(0);
    expect(call.result?.status).toBe('success');
  });
});
