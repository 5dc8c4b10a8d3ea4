// Was: where a budget, a hook or a breaker did not admit the retry of a payment that may have been made, the refusal
// was told as the call's certain failure, and an alternative paid again. Now: what was not made proves nothing about
// what was.
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type AnyTool, type SpillwayOptions, type ToolPolicy } from 'spillway';
import { createApprovals, createBudget } from 'spillway/gates';
import { virtualRuntime } from 'spillway/testing';

const lost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** A payment whose answers are lost, and which may be repeated; what ran, and what its caller was told. */
const paid = async (options: SpillwayOptions, policy: ToolPolicy = {}, more: Partial<AnyTool> = {}) => {
  const ran: string[] = [];
  const pay = tool({
    name: 'pay',
    policy: {
      effects: 'mutating',
      enforcesKey: true,
      alternatives: ['other'],
      retry: { maxAttempts: 3, initialDelayMs: 1_000, jitterPercent: 0 },
      ...policy,
    },
    ...(more as object),
    execute: () => {
      ran.push('pay');
      throw lost();
    },
  });
  const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => ran.push('other') });
  const runtime = virtualRuntime();
  const spillway = createSpillway({ ...options, tools: [pay, other], runtime });
  const running = spillway.execute({ toolName: 'pay', input: {} });
  await runtime.advance(500);
  if (policy.breaker !== undefined) await spillway.orderBreakers('force_open', { tool: 'pay' });
  await runtime.advance(2_000_000);
  const { error } = await running;
  return { ran, error };
};

const once = (): (() => boolean) => {
  let asked = 0;
  return () => asked++ === 0;
};

describe('R-2.5 a retry that is refused', () => {
  it('R-22.6 by a budget leaves the failure before it, and nothing is paid elsewhere', async () => {
    const { ran, error } = await paid({ budget: createBudget({ usd: 1.5, per: 'tenant' }) }, { cost: 1 });
    expect(ran).toStrictEqual(['pay']);
    expect(error).toMatchObject({ code: 'transport_error', uncertain: true });
  });

  it('R-22.3 by a person does so, too', async () => {
    const { ran, error } = await paid({ approvals: createApprovals({ ask: once() }) }, {}, { needsApproval: true });
    expect(ran).toStrictEqual(['pay']);
    expect(error).toMatchObject({ code: 'transport_error', uncertain: true });
  });

  it('R-2.5 by a breaker does so, too', async () => {
    const { ran, error } = await paid({}, { breaker: {} });
    expect(ran).toStrictEqual(['pay']);
    expect(error).toMatchObject({ code: 'transport_error', uncertain: true });
  });

  it('R-12.4 by a hook leaves it open what was done, for the model, too', async () => {
    const admits = once();
    const hooks = { beforeToolCall: () => (admits() ? undefined : { block: 'it is late' }) };
    const { ran, error } = await paid({ hooks });
    expect(ran).toStrictEqual(['pay']);
    expect(error).toMatchObject({ code: 'blocked', uncertain: true });
    expect(error?.modelText).toContain('may have run and taken effect');
  });
});
