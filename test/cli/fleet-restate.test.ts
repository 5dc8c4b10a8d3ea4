import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRestate, type RestateServer } from '../fleet/restate/server.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { folder, marked, spillway, start, type Running } from './support.ts';

const PLAN = `${marked('fleet-restate')}
tools:
  - { id: slow, server: everything, tool: trigger-long-running-operation, effects: read, timeout_ms: 60000 }
turn:
  timeout_ms: 3600000
  nodes:
    - { id: one, tool: everything.echo, input: { message: hello } }
    - { id: two, tool: slow, input: { duration: 15, steps: 2 }, needs: [one] }
    - { id: three, tool: everything.echo, input: { message: "said: \${one}" }, needs: [one, two] }
`;

let redis: RedisServer;
let restate: RestateServer;
let engine: string;
const files = folder();
beforeAll(async () => {
  [redis, restate] = await Promise.all([
    startRedis({ settings: { 'maxmemory-policy': 'noeviction' } }),
    startRestate(),
  ]);
  engine = `${restate.ingressUrl.replace('http:', 'restate:')}?redis=redis+unix://${redis.path}`;
});
afterAll(async () => {
  files[Symbol.dispose]();
  await Promise.all([redis.stop(), restate.stop()]);
});

const found = async (running: Running, text: RegExp): Promise<string> => {
  for (;;) {
    const [, part] = text.exec(running.progress()) ?? [];
    if (part !== undefined) return part;
    if (running.child.exitCode !== null) throw new Error(`it ended: ${running.progress()}`);
    await sleep(20);
  }
};

/** A worker that Restate calls, once it serves. */
const worker = async (planPath: string, name: string): Promise<Running> => {
  const running = start(['worker', planPath, '--engine', `${engine}&port=0`, '--worker', name, '--drain', '200']);
  const port = await found(running, /Restate calls it at port (\d+)/);
  await restate.balance(Number(port), running.ended, 'cli');
  await found(running, /(serves)/);
  return running;
};

describe('R-17.6 the command and a fleet on Restate', () => {
  it('R-17.6 a turn is handed over, left, moved when its worker drains, and attached to from elsewhere', async () => {
    const planPath = files.write('trip.yaml', PLAN);
    const first = await worker(planPath, 'first');
    const run = start(['run', planPath, '--engine', engine, '--turn-id', 'trip-1']);
    await found(run, /(two)/);
    run.child.kill('SIGINT');
    expect((await run.ended).code).toBe(130);
    const report = await spillway('fleet', '--engine', engine);
    expect(report.stdout).toMatch(/^restate: 0 waiting, 1 running/);
    const second = await worker(planPath, 'second');
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(0);
    const attached = await spillway('attach', 'trip-1', '--engine', engine);
    expect(attached.stderr).toContain('turn moved from first to second');
    expect(attached.stdout).toContain('Completed');
    expect(attached.code).toBe(0);
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
  });

  it('R-17.6 says what a Restate needs, and nothing of a password', async () => {
    const cases: ReadonlyArray<readonly [engine: string, text: string]> = [
      ['restate://h:8080', 'Restate needs a Redis for what turns come to, such as restate://localhost:8080?redis='],
      ['restate://h:8080?redis=http://u:hunter2@h', 'Restate needs a Redis'],
      ['restate://h:8080?redis=redis://u:hunter2@127.0.0.1:1', 'nothing answers at redis://127.0.0.1:1'],
      [`${engine}&port=70000`, 'port must be an integer from 0 to 65535, not "70000"'],
      [`${engine}&name=a-b`, 'name must be 1 to 64 letters, digits or _, not "a-b"'],
    ];
    for (const [given, text] of cases) {
      const { code, stderr } = await spillway('attach', 'x', '--engine', given);
      expect({ given, code }).toStrictEqual({ given, code: 2 });
      expect(stderr).toContain(text);
      expect(stderr).not.toContain('hunter2');
    }
  });
});
