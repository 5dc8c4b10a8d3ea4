// Was: a mutating tool that threw without a word of proof was run up to five times.
// Now: such an error is uncertain, and the tool runs once.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, tool, type ToolPolicy, type ToolResultEnvelope } from 'spillway';

const quick = { retry: { initialDelayMs: 1, jitterPercent: 0, maxAttempts: 3 } } as const;

/** Runs a tool that throws, and counts how often it ran. */
const thrownBy = async (
  thrown: unknown,
  policy: ToolPolicy = { effects: 'mutating' },
): Promise<{ readonly runs: number; readonly result: ToolResultEnvelope }> => {
  let runs = 0;
  const pay = tool({
    name: 'pay',
    policy: { ...quick, ...policy },
    execute: () => {
      runs++;
      throw thrown;
    },
  });
  const result = await createSpillway({ tools: [pay] }).execute({ toolName: 'pay' });
  return { runs, result };
};

const withFields = (message: string, fields: object): Error => Object.assign(new Error(message), fields);

/** As a tool throws that has paid, and could not tell of it. */
const behind = (cause: unknown): Error => new Error('paid, and could not send the receipt', { cause });

describe('R-2.5 what an error of a mutating tool proves', () => {
  it.each<readonly [string, unknown]>([
    ['a bare throw', new Error('it broke')],
    ['a text', 'it broke'],
    ['nothing at all', undefined],
    ['an exit code', withFields('Command failed: exit 1', { code: 1, killed: false, signal: null, cmd: 'exit 1' })],
    ['an exit code under another name', withFields('Command failed with exit code 1', { exitCode: 1 })],
    [
      'a child process that wrote too much',
      withFields('spawnSync pay ENOBUFS', { code: 'ENOBUFS', syscall: 'spawnSync pay' }),
    ],
    ['a status that only its text states', new Error('Request failed with status code 503')],
    ['words of a passing fault', new Error('The service is temporarily unavailable, try again later')],
    ['a code of its own making', withFields('odd', { code: 'E_ODD' })],
    ['500', withFields('Internal Server Error', { status: 500 })],
    ['502', withFields('Bad Gateway', { status: 502 })],
    ['504', withFields('Gateway Timeout', { status: 504 })],
    ['a server’s own fault, as a code', withFields('fault', { code: 'InternalServerError' })],
    ['a server’s own fault, as a class', Object.assign(new Error('fault'), { name: 'InternalServerError' })],
    ['gRPC INTERNAL', withFields('13 INTERNAL', { code: 13, details: 'INTERNAL' })],
    ['gRPC UNKNOWN', withFields('2 UNKNOWN', { code: 2, details: 'UNKNOWN' })],
    ['a step that was refused, behind words of its own', behind(withFields('refused', { code: 'ECONNREFUSED' }))],
    ['a step that was answered 503, behind words of its own', behind(withFields('busy', { status: 503 }))],
    ['a step that was throttled, behind words of its own', behind(withFields('slow', { code: 'ThrottlingException' }))],
    ['a step with a code of plain words, behind words of its own', behind(withFields('x', { code: 'server_busy' }))],
    ['two steps behind words of its own', behind(behind(withFields('refused', { code: 'ECONNREFUSED' })))],
    ['several steps that were refused', new AggregateError([withFields('no', { code: 'ECONNREFUSED' })], 'no receipt')],
    ['a lost connection', withFields('read ECONNRESET', { code: 'ECONNRESET' })],
    ['a lost connection, in words', new Error('socket hang up')],
    ['a kind of ours that a lost connection has', new ToolExecutionError('transport_error', 'reset')],
    [
      'a kind of ours with a code of a lost connection',
      new ToolExecutionError('execution_error', 'reset', { code: 'ECONNRESET' }),
    ],
    ['a kind of ours with status 500', new ToolExecutionError('execution_error', 'HTTP 500', { status: 500 })],
  ])('R-2.5 %s leaves open whether it took effect: it runs once', async (_what, thrown) => {
    const { runs, result } = await thrownBy(thrown);
    expect(runs).toBe(1);
    expect(result).toMatchObject({ attempts: 1, error: { uncertain: true } });
  });

  it.each<readonly [string, unknown]>([
    ['429', withFields('Too Many Requests', { status: 429 })],
    ['503', withFields('Service Unavailable', { status: 503 })],
    ['529', withFields('Overloaded', { status: 529 })],
    ['a code that says so', withFields('busy', { code: 'SQLITE_BUSY' })],
    ['a throttle’s code', withFields('slow down', { code: 'ThrottlingException' })],
    ['a refused connection', withFields('connect ECONNREFUSED', { code: 'ECONNREFUSED' })],
    [
      'a refused connection behind what fetch throws',
      new TypeError('fetch failed', { cause: withFields('connect ECONNREFUSED', { code: 'ECONNREFUSED' }) }),
    ],
    [
      'a refused connection of two addresses behind what fetch throws',
      new TypeError('fetch failed', {
        cause: Object.assign(new AggregateError([withFields('no', { code: 'ECONNREFUSED' })]), {
          code: 'ECONNREFUSED',
        }),
      }),
    ],
    ['a name that does not resolve', withFields('getaddrinfo EAI_AGAIN', { code: 'EAI_AGAIN' })],
    [
      'executed: false',
      new ToolExecutionError('execution_error', 'not sent', { executed: false, classification: 'transient' }),
    ],
    [
      'a kind of ours',
      new ToolExecutionError('execution_error', 'the bank said: later', { classification: 'transient' }),
    ],
    [
      'a kind of ours with a code of a refused connection',
      new ToolExecutionError('transport_error', 'refused', { code: 'ECONNREFUSED' }),
    ],
  ])('R-2.5 %s says that it was not done: it is tried again', async (_what, thrown) => {
    const { runs, result } = await thrownBy(thrown);
    expect(runs).toBe(3);
    expect(result.error).not.toHaveProperty('uncertain');
  });

  it.each([400, 401, 403, 404, 409, 422])('R-2.5 %i is a certain no, for good', async (status) => {
    const { runs, result } = await thrownBy(withFields('no', { status }));
    expect(runs).toBe(1);
    expect(result).toMatchObject({ status: 'error', error: { terminal: true } });
    expect(result.error).not.toHaveProperty('uncertain');
  });

  it('R-2.5 of a tool that only reads nothing is left open: it is tried again', async () => {
    const { runs, result } = await thrownBy(new Error('it broke'), { effects: 'read' });
    expect(runs).toBe(3);
    expect(result.error).not.toHaveProperty('uncertain');
  });

  it('R-2.5 a resource that checks the call’s key may be asked again', async () => {
    const { runs, result } = await thrownBy(new Error('it broke'), { effects: 'mutating', enforcesKey: true });
    expect(runs).toBe(3);
    expect(result).toMatchObject({ error: { uncertain: true } });
  });

  it('R-6.1 an alternative does not do again what may have been done', async () => {
    const paid: string[] = [];
    const pay = tool({
      name: 'pay',
      policy: { ...quick, effects: 'mutating', alternatives: ['other'] },
      execute: () => {
        paid.push('pay');
        throw new Error('no receipt');
      },
    });
    const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => paid.push('other') });
    const result = await createSpillway({ tools: [pay, other] }).execute({ toolName: 'pay' });
    expect(paid).toEqual(['pay']);
    expect(result).toMatchObject({ toolName: 'pay', error: { uncertain: true } });
  });
});

describe('R-2.5 real tools', () => {
  it('R-2.5 a shell that exits with 1 runs once, and the next command runs', async () => {
    const run = promisify(execFile);
    let runs = 0;
    const shell = tool({
      name: 'shell',
      policy: { effects: 'mutating' },
      execute: async ({ command }: { command: string }) => {
        runs++;
        return (await run('sh', ['-c', command])).stdout;
      },
    });
    const spillway = createSpillway({ tools: [shell] });
    expect(await spillway.execute({ toolName: 'shell', input: { command: 'exit 1' } })).toMatchObject({
      attempts: 1,
      error: { code: 'execution_error', uncertain: true },
    });
    expect(runs).toBe(1);
    expect(await spillway.execute({ toolName: 'shell', input: { command: 'echo hello' } })).toMatchObject({
      status: 'success',
      output: { content: 'hello\n' },
    });
  });

  it('R-2.5 a bank that pays and then answers 500 pays once, one that answers 503 is asked again', async () => {
    const paid: number[] = [];
    const asked: number[] = [];
    const server = createServer((request, response) => {
      const status = Number(request.url?.slice(1));
      asked.push(status);
      if (status === 500) paid.push(20);
      response.writeHead(status).end();
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const pay = tool({
      name: 'pay',
      policy: { ...quick, effects: 'mutating' },
      execute: async ({ status }: { status: number }) => {
        const response = await fetch(`http://127.0.0.1:${port}/${status}`, { method: 'POST' });
        if (!response.ok) throw withFields(`HTTP ${response.status}`, { status: response.status });
        return 'paid';
      },
    });
    const spillway = createSpillway({ tools: [pay] });
    expect(await spillway.execute({ toolName: 'pay', input: { status: 500 } })).toMatchObject({
      error: { uncertain: true },
    });
    expect(paid).toEqual([20]);
    await spillway.execute({ toolName: 'pay', input: { status: 503 } });
    expect(asked).toEqual([500, 503, 503, 503]);
    await new Promise((resolve) => server.close(resolve));
  });
});
