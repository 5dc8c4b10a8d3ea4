import { plan, tool, type AnyTool } from 'spillway';
import { exploreFaults, type ExploreOptions, type Exploration, type World } from 'spillway/testing/explore';
import { faultMatchers } from 'spillway/testing/matchers';
import { describe, expect, it } from 'vitest';
import { PLANTED } from './planted.ts';
import { trip, tripTools } from './trip.ts';

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void>, T> {
    toSurviveFaults(this: Matchers<R, T>): R;
  }
}

const one = (execute: (world: World) => unknown = () => 'seen'): ((world: World) => readonly AnyTool[]) => {
  const policy = { effects: 'read', timeoutMs: 1_000, retry: { maxAttempts: 2, maxTotalTimeMs: 60_000 } } as const;
  return (world) => [{ name: 'look', policy, execute: () => execute(world) }];
};
const look = plan.from([{ id: 'it', tool: 'look' }]);
const planted = async (bug: string, more: ExploreOptions = {}): Promise<Exploration> => {
  const found = PLANTED.find((one) => one.bug.includes(bug));
  if (found === undefined) throw new Error(`no bug is called ${bug}`);
  const { plan, tools, options } = found.made(true);
  return exploreFaults(plan, tools, { ...options, ...more });
};

describe('exploring a plan', () => {
  it(
    'XPL-2 a trip of five bookings, under every pair and a death at each question to the store',
    { timeout: 1_800_000 },
    async () => {
      const { findings, explored, repeated } = await exploreFaults(trip, tripTools, { storeFaults: true });
      expect(findings.map(({ message }) => message)).toEqual([]);
      expect(explored).toBeGreaterThan(2_500);
      expect(repeated).toBe(0);
    },
  );

  it('XPL-4 gives the same bytes each time', async () => {
    const [first, second] = [await planted('refund'), await planted('refund')];
    expect(first.findings.length).toBeGreaterThan(0);
    expect(JSON.stringify(first)).toBe(JSON.stringify(second));
  });

  it('XPL-5 strikes each attempt that happens with each fault that can differ, and counts the others', async () => {
    // Nothing is changed, so that before and after it are the same; a second attempt comes only after a failed one.
    expect(await exploreFaults(look, one(), { depth: 1 })).toMatchObject({
      explored: 1 + 4,
      pruned: { same: 5, unreached: 9 },
      findings: [],
    });
    // After a broken connection and after a hang there is a second attempt; after a refusal and a death there is none.
    expect(await exploreFaults(look, one())).toMatchObject({ explored: 1 + 4 + 2 * 4 });
    // What is changed can be changed before an attempt fails, or after it.
    const writes = one((world) => world.add('it'));
    expect(await exploreFaults(look, writes, { depth: 1 })).toMatchObject({
      explored: 1 + 9,
      pruned: { same: 0, unreached: 9 },
    });
    expect(await exploreFaults(look, writes, { depth: 1, faults: ['hangs', 'refused'] })).toMatchObject({
      explored: 1 + 2,
    });
  });

  it('XPL-5 refuses a plan that is too large, with the numbers, and leaves nothing out', async () => {
    await expect(exploreFaults(look, one(), { maxSchedules: 12 })).rejects.toThrow(
      'exploreFaults: 1 node at depth 2 are 13 schedules, more than maxSchedules (12). ' +
        'Raise it (about 1 minute), take depth: 1 (5 schedules), or name fewer faults',
    );
    await expect(exploreFaults(look, one(), { maxSchedules: 4, depth: 1 })).rejects.toThrow(
      'exploreFaults: 1 node at depth 1 are 5 schedules, more than maxSchedules (4). ' +
        'Raise it (about 1 minute), or name fewer faults',
    );
    expect(await exploreFaults(look, one(), { maxSchedules: 13 })).toMatchObject({ explored: 13 });
  });

  it('XPL-5 findings beyond maxFindings are counted', async () => {
    const all = await planted('compensation that throws', { maxFindings: 100 });
    const few = await planted('compensation that throws', { maxFindings: 2 });
    expect(all.moreFindings).toBe(0);
    expect(few.findings).toEqual(all.findings.slice(0, 2));
    expect(few.moreFindings).toBe(all.findings.length - 2);
    expect(all.repeated).toBeGreaterThan(0);
  });

  it('XPL-2 knows effects whatever form a tool gives its output in', async () => {
    async function* streamed(world: World) {
      yield 'early';
      await world.sleep(5);
      world.add('it');
      yield 'late';
    }
    const outcomes = await Promise.all([
      exploreFaults(
        look,
        one(async (world) => {
          await world.sleep(5);
          world.add('it');
        }),
        { depth: 1 },
      ),
      exploreFaults(look, one(streamed), { depth: 1 }),
    ]);
    // Declared as one that reads, it is run again.
    for (const { findings } of outcomes) expect(findings.map(({ kind }) => kind)).toContain('twice');
  });

  it('XPL-1 finds an effect that one attempt makes twice', async () => {
    const twice = one((world) => {
      world.add('it');
      world.add('it');
    });
    const { findings } = await exploreFaults(look, twice, { depth: 1 });
    expect(findings.map(({ message }) => message)).toContain(
      'nothing goes wrong: the effect of it under "it" was done twice',
    );
  });

  it.each([
    ['its tool', { needsApproval: true }, {}],
    ['its tool, by a rule', { needsApproval: (input: unknown) => input !== 3 }, {}],
    ['its tool’s policy', { policy: { effects: 'mutating', needsApproval: true } }, {}],
    ['its node', {}, { needsApproval: true }],
  ] as const)('XPL-2 what %s has a person approve is approved', async (_, ofTool, ofNode) => {
    const tools = (world: World): readonly AnyTool[] => [
      { name: 'look', policy: { effects: 'mutating' }, execute: () => world.add('it'), ...ofTool },
    ];
    const { findings } = await exploreFaults(plan.from([{ id: 'it', tool: 'look', input: 7, ...ofNode }]), tools, {
      schedules: [[]],
    });
    expect(findings.map(({ message }) => message)).toEqual([]);
  });

  it('XPL-1 finds a turn that waits for ever for what it has to undo', async () => {
    const slow: AnyTool = {
      name: 'slow',
      policy: { effects: 'mutating', timeoutMs: 1e12 },
      execute: () => new Promise(() => undefined),
    };
    const nodes = [{ id: 'it', tool: 'slow' }];
    const { findings } = await exploreFaults(
      plan.from(nodes, { onFailure: 'compensate', timeoutMs: 1_000 }),
      () => [slow],
      { depth: 1 },
    );
    expect(findings.map(({ kind, message }) => `${kind}: ${message}`)).toContain(
      'unsettled: nothing goes wrong: the turn did not settle',
    );
  });
});

describe('a mistake in a test', () => {
  it.each([
    [{ depth: 3 }, 'depth must be an integer from 1 to 2, not 3'],
    [{ faults: ['explodes'] }, 'faults of exploreFaults must be one of refused, '],
    [{ deep: 1 }, 'exploreFaults has no option "deep"'],
    [{ layer: { tools: [] } }, 'layer of exploreFaults has no option "tools"'],
    [{ schedules: [[{ node: 'it', act: 'run', attempt: 0, fault: 'hangs' }]] }, 'attempt of a strike must be'],
    [
      { schedules: [[{ node: 'it', act: 'run', attempt: 2, fault: 'hangs' }]] },
      'attempt 2 of it (run) never happens, so that this schedule proves nothing; has the plan changed?',
    ],
  ])('XPL-6 is said: %j', async (options, message) => {
    await expect(exploreFaults(look, one(), options as ExploreOptions)).rejects.toThrow(message);
  });

  it('XPL-6 is said: tools that are no function, a tool that is not there, effects of nobody', async () => {
    await expect(exploreFaults(look, [] as never)).rejects.toThrow(
      'tools of exploreFaults must be a function of a world',
    );
    await expect(exploreFaults(look, () => [])).rejects.toThrow(
      'the plan needs the tool look, which is not among the tools; add it to them',
    );
    let runs = 0;
    const counting = one(() => (runs++ === 0 ? 'seen' : Promise.reject(new TypeError('again'))));
    const many = plan.from([
      { id: 'it', tool: 'look' },
      { id: 'then', tool: 'look', needs: ['it'] },
    ]);
    await expect(exploreFaults(many, counting)).rejects.toThrow(
      'exploreFaults: the plan goes another way when it is run again (attempt 1 of then is refused)',
    );
    const outside = (world: World): readonly AnyTool[] => {
      world.add('at once');
      return one()(world);
    };
    await expect(exploreFaults(look, outside)).rejects.toThrow(
      'world.add("at once") was called outside of what a tool',
    );
  });
});

describe('the matcher', () => {
  expect.extend(faultMatchers);
  const matched = (received: unknown) => faultMatchers.toSurviveFaults(received);

  it('XPL-3 passes where nothing was found', async () => {
    const exploration = await exploreFaults(look, one());
    expect(exploration).toSurviveFaults();
    expect(matched(exploration).message()).toBe(
      'all 13 schedules of faults are survived, and one was expected not to be',
    );
  });

  it('XPL-3 shows what was found: a sentence, a diagram and a test', async () => {
    const exploration = await planted('reads');
    const { pass, message } = matched(exploration);
    expect(pass).toBe(false);
    expect(message()).toContain('16 of ');
    const [first] = exploration.findings;
    expect(message()).toContain(
      'twice: attempt 1 of pay breaks off after its effect: the effect of pay under ' +
        '"00000000-0000-7000-8000-000000000002" was done twice',
    );
    expect(message()).toContain(first?.marbles);
    expect(message()).toContain(first?.test);
    expect(first?.marbles).toContain('pay  ^✗');
  });

  it('XPL-6 says what it takes', () => {
    expect(() => matched(undefined)).toThrow('toSurviveFaults takes what exploreFaults gives');
  });
});

// A core that others use as well, and its caches, is slower: on a quiet machine it is more than twice as many.
it('XPL-7 5,000 schedules take less than a minute of a core that is shared', async () => {
  const before = process.threadCpuUsage();
  const { explored } = await exploreFaults(trip, tripTools);
  const { user, system } = process.threadCpuUsage(before);
  const perMinute = Math.round((explored / ((user + system) / 1_000)) * 60_000);
  process.stderr.write(`explored ${explored} schedules of six nodes, ${perMinute} a minute of a core\n`);
  expect(perMinute).toBeGreaterThan(5_000);
});

it('XPL-2 a tool that a plan’s node brings along is run as it is', async () => {
  const brought = tool({
    name: 'brought',
    policy: { effects: 'read', timeoutMs: 1_000, retry: { maxTotalTimeMs: 60_000 } },
    execute: () => 'seen',
  });
  const { findings, explored } = await exploreFaults(plan().call('it', brought, undefined), () => [], { depth: 1 });
  expect(findings).toEqual([]);
  expect(explored).toBe(5);
});
