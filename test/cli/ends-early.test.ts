import { describe, expect, it } from 'vitest';
import { STACK_TRACE, folder, gone, marked, processesOf, start, until, type Folder, type Running } from './support.ts';

const LONG_MS = 60_000;

/** One call that is over at once, one that takes a minute. */
const longPlan = (files: Folder, mark: string): string =>
  files.write(
    'plan.yaml',
    `${marked(mark)}turn:
  nodes:
    - { id: quick, tool: everything.echo, input: { message: harvested } }
    - { id: long, tool: everything.trigger-long-running-operation, input: { duration: 60, steps: 600 } }
    - { id: after, tool: everything.echo, needs: [long], input: { message: x } }
`,
  );

/** Until the quick call has its value and the long one runs. */
const midTurn = (running: Running): Promise<void> =>
  until(() => /quick: succeeded/.test(running.progress()) && /long: progress/.test(running.progress()));

describe('CLI ended early', { timeout: LONG_MS }, () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'by %s mid-turn prints its harvest, stops its servers and exits 130',
    async (signal) => {
      using files = folder();
      const mark = `spillway-mid-${signal}`;
      const running = start(['run', longPlan(files, mark)]);
      await midTurn(running);
      expect(processesOf(mark)).not.toEqual([]);
      running.child.kill(signal);
      const { code, stdout, stderr } = await running.ended;
      expect(code).toBe(130);
      expect(stdout).toMatch(/^quick .*succeeded .*Echo: harvested$/m);
      expect(stdout).toMatch(/^long .*canceled/m);
      expect(stdout).toMatch(/^partial: Completed quick, but long and after were canceled\.$/m);
      expect(stderr).not.toMatch(STACK_TRACE);
      await gone(mark);
    },
  );

  it('by a second SIGINT exits 130 at once, and leaves no server', async () => {
    using files = folder();
    const mark = 'spillway-twice';
    const running = start(['run', longPlan(files, mark)]);
    await midTurn(running);
    running.child.kill('SIGINT');
    await until(() => /turn partial/.test(running.progress()));
    running.child.kill('SIGINT');
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stderr).not.toMatch(STACK_TRACE);
    await gone(mark);
  });

  it('by SIGINT while a server starts calls nothing and exits 130', async () => {
    using files = folder();
    const plan = files.write(
      'plan.yaml',
      `servers: { mute: { command: ${JSON.stringify(process.execPath)}, args: [-e, "setInterval(() => {}, 1000)", stdio, spillway-mute] } }\nturn: { nodes: [{ id: a, tool: mute.x }] }\n`,
    );
    const running = start(['run', plan]);
    await until(() => processesOf('spillway-mute').length > 0);
    running.child.kill('SIGINT');
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toMatch(/interrupted before the turn began; nothing was called/);
    await gone('spillway-mute');
  });

  it('by a reader that closes stdout mid-turn ends quietly with 0 and stops its servers', async () => {
    using files = folder();
    const mark = 'spillway-head';
    const running = start(['run', longPlan(files, mark), '--json']);
    await midTurn(running);
    running.child.stdout.destroy();
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/EPIPE/);
    expect(stderr).not.toMatch(STACK_TRACE);
    await gone(mark);
  });

  it('of nothing but its progress, when stderr is closed: the turn goes on', async () => {
    using files = folder();
    const plan = files.write(
      'plan.yaml',
      `${marked('spillway-stderr')}turn: { nodes: [{ id: a, tool: everything.echo, input: { message: x } }] }\n`,
    );
    const running = start(['run', plan]);
    running.child.stderr.destroy();
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).toContain('Echo: x');
  });

  it('by the death of a server mid-turn reports the call, and keeps what completed', async () => {
    using files = folder();
    const mark = 'spillway-killed';
    const running = start(['run', longPlan(files, mark)]);
    await midTurn(running);
    for (const pid of processesOf(mark)) process.kill(pid, 'SIGKILL');
    // The call may have had no effect, so it is tried again, on a server that was started again.
    await until(() => /long: attempt 1 failed .*transport_error/.test(running.progress()));
    await until(() => /long: attempt 2/.test(running.progress()) && processesOf(mark).length > 0);
    for (const pid of processesOf(mark)) process.kill(pid, 'SIGKILL');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/^quick .*succeeded .*Echo: harvested$/m);
    expect(stdout).toMatch(/^long .*failed/m);
    expect(stderr).not.toMatch(STACK_TRACE);
    await gone(mark);
  });
});
