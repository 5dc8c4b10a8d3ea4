import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { folder, marked, spillway, start, type Running } from './support.ts';

const HOUR_MS = 3_600_000;

const planOf = (durationS: number): string => `${marked('fleet-cli')}
tools:
  - { id: slow, server: everything, tool: trigger-long-running-operation, effects: read, timeout_ms: 60000 }
turn:
  timeout_ms: ${HOUR_MS}
  nodes:
    - { id: one, tool: everything.echo, input: { message: hello } }
    - { id: two, tool: slow, input: { duration: ${durationS}, steps: 2 }, needs: [one] }
    - { id: three, tool: everything.echo, input: { message: "said: \${one}" }, needs: [one, two] }
`;

let redis: RedisServer;
let engine: string;
const files = folder();
beforeAll(async () => {
  redis = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } });
  engine = `bullmq+unix://${redis.path}`;
});
afterAll(async () => {
  files[Symbol.dispose]();
  await redis.stop();
});

const seen = async (running: Running, text: string | RegExp): Promise<void> => {
  while (!(typeof text === 'string' ? running.progress().includes(text) : text.test(running.progress()))) {
    if (running.child.exitCode !== null) throw new Error(`it ended: ${running.progress()}`);
    await sleep(20);
  }
};

describe('R-17.6 the command and a fleet', () => {
  it('R-17.6 a turn is handed over, left, attached to from elsewhere, and moved when its worker drains', async () => {
    // Longer than what is asked of it meanwhile takes on a busy machine.
    const planPath = files.write('trip.yaml', planOf(15));
    const first = start(['worker', planPath, '--worker', 'first', '--metrics', '0', '--drain', '200'], {
      SPILLWAY_ENGINE: engine,
    });
    await seen(first, 'serves');
    const run = start(['run', planPath, '--engine', engine, '--turn-id', 'trip-1']);
    await seen(run, 'turn trip-1');
    await seen(run, /two/);
    run.child.kill('SIGINT');
    const left = await run.ended;
    expect(left.code).toBe(130);
    expect(left.stderr).toContain('the turn goes on: spillway attach trip-1');

    const [, port] = /metrics at port (\d+)/.exec(first.progress()) ?? [];
    const ask = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    expect(await ask('/readyz')).toBe('serving\n');
    const metrics = await ask('/metrics');
    expect(metrics).toContain('spillway_fleet_turns{engine="bullmq",state="running"} 1');
    expect(metrics).toContain('tool="slow"');

    const report = await spillway('fleet', '--engine', engine);
    expect(report.code).toBe(0);
    expect(report.stdout).toMatch(/^bullmq: 0 waiting, 1 running/);
    expect(report.stdout).toContain('first');

    const second = start(['worker', planPath, '--engine', engine, '--worker', 'second']);
    await seen(second, 'serves');
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const attached = await spillway('attach', 'trip-1', '--engine', engine);
    expect(attached.code).toBe(0);
    expect(attached.stderr).toContain('turn moved from first to second');
    expect(attached.stdout).toContain('Completed');
    const again = await spillway('attach', 'trip-1', '--engine', engine, '--json');
    const last = JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '') as { result: { values: unknown } };
    expect(JSON.stringify(last.result.values)).toContain('said: Echo: hello');
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
    expect((await spillway('fleet', '--engine', engine)).code).toBe(1);
  }, 240_000);

  it('R-17.6 says what is wrong with an engine, and nothing of a password', async () => {
    const planPath = files.write('small.yaml', planOf(1));
    const cases: ReadonlyArray<readonly [readonly string[], string]> = [
      [['attach', 'x'], 'the engine is missing; write --engine bullmq://localhost:6379, or set SPILLWAY_ENGINE'],
      [['attach', 'x', '--engine', 'redis://h'], 'there is no engine "redis:"; there is bullmq:'],
      [['attach', 'x', '--engine', 'bullmq://u:hunter2@127.0.0.1:1'], 'nothing answers at bullmq://127.0.0.1:1'],
      [['attach', 'x', '--engine', engine], 'There is no turn x'],
      [['run', planPath, '--engine', engine, '--seed', '1'], '--seed is about a turn that runs here'],
      [['run', planPath, '--turn-id', 'x'], '--turn-id is the id of a turn of a fleet; give --engine, too'],
      [['worker', planPath, '--engine', engine, '--worker', 'a b'], 'worker must be 1 to 128 letters'],
    ];
    for (const [args, text] of cases) {
      const { code, stderr } = await spillway(...args);
      expect({ args, code }).toStrictEqual({ args, code: 2 });
      expect(stderr).toContain(text);
      expect(stderr).not.toContain('hunter2');
    }
  });
});
