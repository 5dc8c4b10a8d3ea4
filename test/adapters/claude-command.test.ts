import { createSpillway, type TraceEvent } from 'spillway';
import { createHarvest, guardTools } from 'spillway/adapters/claude-agent';
import { createApprovals } from 'spillway/gates';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { askClaude, loadClaudeCommand, type CanUseTool } from './frameworks/claude-command.ts';
import { CANARY, type ModelCall, type Pay } from './frameworks/kit.ts';

beforeAll(loadClaudeCommand, SIDE_INSTALL_TIMEOUT_MS);

const CALL: ModelCall = { id: 'toolu_1', name: 'pay', input: { amount: 5_000 } };
/** A machine may be busy, and each run starts a program. */
const PATIENT = { timeout: 120_000 };

/** Runs the command with one tool that pays; `undefined` leaves it unguarded. */
const asked = async (
  execute: Pay,
  guard: GuardLayerOptions | undefined,
  canUseTool: CanUseTool,
  calls: readonly ModelCall[] = [CALL],
): Promise<ReadonlyMap<string, string>> => {
  const { tool } = await loadClaudeCommand();
  const pay = tool('pay', 'pays', { amount: z.number() }, async () => ({
    content: [{ type: 'text', text: await execute() }],
  }));
  return askClaude(guard === undefined ? [pay] : guardTools([pay], guard), calls, canUseTool);
};

const thrown = (fields: object): Promise<never> => Promise.reject(Object.assign(new Error(CANARY), fields));
const AFTER_PAYING: Readonly<Record<string, Pay>> = {
  nothing: () => Promise.resolve('paid'),
  'a bare error': () => thrown({}),
  ECONNRESET: () => thrown({ code: 'ECONNRESET' }),
  'HTTP 500': () => thrown({ status: 500 }),
  'a hang': () => new Promise(() => undefined),
};

describe('Claude’s own command, whose host is asked by canUseTool', PATIENT, () => {
  /** How often a person was asked, and what was paid by then. */
  const person = (paid: () => number, isYes = true): { canUseTool: CanUseTool; readonly seen: number[] } => {
    const seen: number[] = [];
    const canUseTool: CanUseTool = (_name, updatedInput) => {
      seen.push(paid());
      return Promise.resolve(
        isYes ? { behavior: 'allow', updatedInput } : { behavior: 'deny', message: 'No, says Grace.' },
      );
    };
    return { canUseTool, seen };
  };

  it('R-2.5 alone a person is asked once, nothing is paid before, and a secret is shown', async () => {
    let paid = 0;
    const { canUseTool, seen } = person(() => paid);
    const results = await asked(() => (paid++, thrown({})), undefined, canUseTool);
    expect([seen, paid]).toEqual([[0], 1]);
    expect(results.get('toolu_1')).toContain(CANARY);
  });

  it.each(Object.entries(AFTER_PAYING))(
    'R-2.5 R-12.4 guarded, %s after paying: asked once, nothing paid before, once after, and the model is told',
    async (fault, after) => {
      let paid = 0;
      const { canUseTool, seen } = person(() => paid);
      const results = await asked(() => (paid++, after()), { defaults: { timeoutMs: 200 } }, canUseTool);
      expect([seen, paid]).toEqual([[0], 1]);
      const told = results.get('toolu_1') ?? '';
      expect(told).toContain(fault === 'nothing' ? 'paid' : 'may have');
      expect(told).not.toContain(CANARY);
    },
  );

  it('R-2.5 guarded, a no is the model’s, and nothing is paid', async () => {
    let paid = 0;
    const { canUseTool, seen } = person(() => paid, false);
    const results = await asked(() => Promise.resolve(`paid ${++paid}`), {}, canUseTool);
    expect([seen, paid]).toEqual([[0], 0]);
    expect(results.get('toolu_1')).toContain('No, says Grace.');
  });

  it.each([true, false])('R-22.1 a layer that has a person approve it, too, is not gone round: %s', async (isYes) => {
    let paid = 0;
    const own: number[] = [];
    const approvals = createApprovals({
      ask: () => {
        own.push(seen.length);
        return isYes;
      },
    });
    const spillway = createSpillway({ approvals, defaults: { needsApproval: true } });
    const { canUseTool, seen } = person(() => paid);
    await asked(() => Promise.resolve(`paid ${++paid}`), { spillway }, canUseTool);
    // Claude's host is asked first.
    expect([seen, own, paid]).toEqual([[0], [1], isYes ? 1 : 0]);
    await spillway.close();
  });

  it('R-7.1 R-5.6 the trace and a harvest have the call under the model’s id', async () => {
    const spillway = createSpillway();
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    const harvest = createHarvest();
    const { canUseTool } = person(() => 0);
    await harvest.run(() => asked(() => Promise.resolve('paid'), { spillway }, canUseTool));
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({ toolCallId: 'toolu_1' });
    expect(harvest.calls).toMatchObject([{ toolName: 'pay', toolCallId: 'toolu_1', state: 'succeeded' }]);
    await spillway.close();
  });

  it('R-12.3 a call that its model repeats in one step is made twice alone, and once guarded', async () => {
    const call = { ...CALL, id: 'toolu_01A09q90qw90lq917835lq9' };
    const paidBy = async (guard: GuardLayerOptions | undefined): Promise<number> => {
      let paid = 0;
      const { canUseTool } = person(() => paid);
      await asked(() => Promise.resolve(`paid ${++paid}`), guard, canUseTool, [call, call]);
      return paid;
    };
    expect([await paidBy(undefined), await paidBy({})]).toEqual([2, 1]);
  });
});
