import { lastValueFrom } from 'rxjs';
import { createSpillway, tool } from 'spillway';
import { runAgent, scriptedModel, type AgentOptions } from 'spillway/agent';
import { createApprovals, createBudget, type ApprovalRequest } from 'spillway/gates';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const search = tool({ name: 'search', input: z.object({}), policy: { effects: 'read' }, execute: () => 'found' });
const calling = () => scriptedModel([{ calls: [{ name: 'search', input: {} }] }, { text: 'done' }]);
type Whose = Pick<AgentOptions, 'session' | 'actor' | 'tenant'>;
const options = (layer: AgentOptions['spillway'], whose: Whose): AgentOptions => ({
  model: calling(),
  spillway: layer,
  tools: [search],
  messages: [{ role: 'user', content: 'go' }],
  ...whose,
});

describe('whose run it is', () => {
  it.each(['session', 'tenant'] as const)('R-22.6 a budget per %s holds for the runs of each', async (per) => {
    const budget = createBudget({ calls: 1, per });
    const layer = createSpillway({ tools: [search], budget });
    const told = async (name: string): Promise<string> =>
      JSON.stringify(await lastValueFrom(runAgent(options(layer, { [per]: name }))));
    expect(await told('ada')).not.toContain('budget is used up');
    expect(await told('ada')).toContain('budget is used up');
    expect(await told('grace')).not.toContain('budget is used up');
    expect(await budget.left({ [per]: 'grace' })).toMatchObject([{ left: 0 }]);
    await layer.close();
  });

  it('R-22.2 a person is asked for whom a run calls a tool', async () => {
    const asked: ApprovalRequest[] = [];
    const approvals = createApprovals({
      ask: (request) => {
        asked.push(request);
        return true;
      },
    });
    const layer = createSpillway({ tools: [search], approvals });
    const guarded = { ...search, needsApproval: true };
    const whose = { session: 's', actor: 'a', tenant: 't' };
    await lastValueFrom(runAgent({ ...options(layer, whose), tools: [guarded] }));
    expect(asked).toMatchObject([whose]);
    await layer.close();
  });

  it('R-22.2 a name that names nobody is refused', () => {
    const layer = createSpillway({ tools: [search] });
    for (const whose of [{ session: '' }, { actor: 5 as never }, { tenant: 'x'.repeat(513) }])
      expect(() => runAgent(options(layer, whose))).toThrow(/must be a text of 1 to 512 characters/);
  });
});
