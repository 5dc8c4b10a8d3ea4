import type { ToolResultEnvelope } from '../../src/contract/envelope.ts';
import { plan } from '../../src/turn/plan.ts';
import type { BreakerWatch } from './breaker-watch.ts';
import type { CallPlace } from './call-place.ts';
import type { ToolSpec, TurnOperation } from './scenario.ts';
import { TurnWatch } from './turn-watch.ts';
import { untilQuiet } from './until-quiet.ts';
import type { World } from './world.ts';

/** Numbers beyond those of the first phase. */
const FIRST_N = 100_000;

/** The second phase: without faults every breaker closes, every tool answers, and nothing is left behind. */
export async function converge(world: World): Promise<void> {
  const { findings, scenario, spillway } = world;
  world.calm = true;
  let n = FIRST_N;
  const call = async (
    tool: ToolSpec,
    global: boolean,
    dependency: boolean,
    tenant: string,
  ): Promise<ToolResultEnvelope | undefined> => {
    n++;
    const hint = global ? 'global' : dependency ? 'dependency' : 'tool';
    const envelope = { maxAttempts: 1, maxElapsedMs: 1_000, breakerHint: hint } as const;
    const place: CallPlace = {
      n,
      startedMs: world.now(),
      ownDeadlineMs: Infinity,
      turnDeadlineMs: Infinity,
      tenant,
      envelope,
    };
    world.beginning = { place, tool };
    let result: ToolResultEnvelope | undefined;
    const request = {
      contractVersion: '1.1',
      requestId: `r${n}`,
      toolName: tool.name,
      toolNamespace: 'simulation',
      target: { sessionKey: 's', actorId: 'a', ...(tenant === '' ? {} : { tenantId: tenant }) },
      payload: { version: '1.0', params: { n } },
      transport: {
        dedupeMode: 'disabled',
        retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 },
        circuitBreakerHint: hint,
      },
      control: {},
      trace: {},
    } as const;
    void spillway.execute(request).then((settled) => (result = settled));
    world.beginning = undefined;
    await untilQuiet(world);
    return result;
  };
  if (world.closed) {
    const [tool] = scenario.tools;
    if (tool === undefined) return;
    const result = await call(tool, false, false, '');
    findings.check(result?.error?.code === 'canceled', 'RES-3', () => `a call after close() gives ${result?.status}`);
    return;
  }
  for (const tool of scenario.tools)
    world.breakerOf(tool, { n: 0, startedMs: 0, ownDeadlineMs: 0, turnDeadlineMs: 0, tenant: '' });
  for (const watch of world.breakers.values()) await closes(world, watch, call);
  // A ramp admits everything once it is over.
  world.runtime.scheduler.runUntil(world.now() + 1_000);
  await turnCompletes(world);
}

async function closes(
  world: World,
  watch: BreakerWatch,
  call: (tool: ToolSpec, global: boolean, dependency: boolean, tenant: string) => Promise<unknown>,
): Promise<void> {
  const { findings, scenario } = world;
  const [name = '', tenant = ''] = watch.key.split('|');
  const tool = scenario.tools.find(
    (spec) => spec.settings !== undefined && (spec.name === name || spec.dependency === name || name === '*'),
  );
  if (tool === undefined) return;
  world.byHand = true;
  if (watch.type === 'forced_open' || watch.type === 'disabled') watch.breaker.reset();
  world.byHand = false;
  if (watch.type === 'open') world.runtime.scheduler.runUntil(world.now() + watch.cooldownBoundMs);
  const calls = watch.settings.successThreshold + 1;
  for (let i = 0; i < calls && watch.type !== 'closed'; i++)
    await call(tool, name === '*', name === tool.dependency, tenant);
  findings.check(
    watch.type === 'closed',
    'BRK-5',
    () => `${watch.key} is ${watch.type} after its cooldown and ${calls} good calls`,
  );
}

/** All tools one after the other, in one turn. */
async function turnCompletes(world: World): Promise<void> {
  const { findings, scenario, spillway } = world;
  const nodes = scenario.tools.map(({ index }) => ({
    id: `n${index}`,
    n: 2 * FIRST_N + index,
    tool: index,
    needs: index === 0 ? [] : [`n${index - 1}`],
    optional: false,
    hasDefault: false,
    computesInput: false,
  }));
  const operation: TurnOperation = {
    kind: 'turn',
    n: 2 * FIRST_N,
    atMs: 0,
    nodes,
    timeoutMs: 10_000,
    onDeadline: 'abort',
    concurrency: Infinity,
    ending: { how: 'stay' },
  };
  const turn = new TurnWatch(operation, findings, () => world.now());
  world.beginning = turn;
  const planned = nodes.map((node) => ({
    id: node.id,
    tool: `t${node.tool}`,
    input: { n: node.n },
    needs: node.needs,
  }));
  const subscription = spillway.turn(plan.from(planned, { timeoutMs: operation.timeoutMs })).subscribe();
  world.beginning = undefined;
  await untilQuiet(world);
  subscription.unsubscribe();
  findings.check(
    turn.result?.status === 'completed',
    'RES-3',
    () => `a turn of good tools is ${turn.result?.status}: ${turn.result?.summary}`,
  );
}
