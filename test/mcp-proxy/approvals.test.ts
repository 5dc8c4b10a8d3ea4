import { join } from 'node:path';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { EMPTY } from 'rxjs';
import { createSpillway, type SpillwayOptions } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { createApprovals, type ApprovalAnswer, type ApprovalRequest, type Approvals } from 'spillway/gates';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';
import { sqliteStore } from 'spillway/stores/sqlite';
import { describe, expect, it } from 'vitest';
import { folder } from '../cli/support.ts';
import { isAlive, until } from '../providers/support.ts';
import { NODE, QUICK, ledger, proxied, textOf, type Ledger } from './kit.ts';

const BANK = join(import.meta.dirname, 'modern-fault-server.ts');
const BUSY_MS = 60_000;
const defaults = { needsApproval: true, timeoutMs: 5_000, retry: QUICK };

interface Paying extends AsyncDisposable {
  /** What the model is told. */
  readonly pay: (amount: number, then?: string) => Promise<string>;
  /** Resolves once the death of the bank is known here. */
  readonly lost: () => Promise<void>;
  /** Whether a bank that died is started again. */
  readonly restarts: boolean;
}
type Gates = Pick<SpillwayOptions, 'store'> & { readonly approvals: Approvals };
type Make = (kept: Ledger, gates: Gates) => Promise<Paying>;

const throughProxy: Make = async (kept, gates) => {
  const it = await proxied({ s: { place: { command: NODE, args: [BANK, kept.path] } } }, { defaults, ...gates });
  const starts = kept.count('started ');
  return {
    pay: async (amount, then) => textOf(await it.call('pay', { amount, ...(then === undefined ? {} : { then }) })),
    lost: () => until(() => kept.count('started ') > starts, BUSY_MS),
    restarts: true,
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  };
};

const ofProvider: Make = async (kept, gates) => {
  const bank = await mcpStdioProvider({ name: 'bank', command: NODE, args: [BANK, kept.path] });
  const spillway = createSpillway({ providers: [bank], defaults, ...gates });
  return {
    pay: async (amount, then) => {
      const input = { amount, ...(then === undefined ? {} : { then }) };
      const { error, output } = await spillway.execute({ toolName: 'bank.pay', input });
      return error?.modelText ?? JSON.stringify(output);
    },
    lost: () => until(() => bank.pid === undefined, BUSY_MS),
    restarts: true,
    [Symbol.asyncDispose]: () => spillway.close(),
  };
};

const guarded: Make = async (kept, gates) => {
  const client = new Client2({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  let isLost = false;
  Object.assign(client, { onclose: () => (isLost = true) });
  await client.connect(new Stdio2({ command: NODE, args: [BANK, kept.path], stderr: 'ignore' }));
  const spillway = createSpillway({ defaults, ...gates });
  const calling = guardClient(client, { spillway });
  return {
    pay: async (amount, then) =>
      JSON.stringify(
        await calling.callTool({ name: 'pay', arguments: { amount, ...(then === undefined ? {} : { then }) } }),
      ),
    lost: () => until(() => isLost, BUSY_MS),
    restarts: false,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await spillway.close();
    },
  };
};

/** Asks a list of people, one after the other, and keeps what each was asked. */
const people = (...answers: readonly (() => ApprovalAnswer | Promise<ApprovalAnswer>)[]) => {
  const asked: unknown[] = [];
  const ask = ({ input }: ApprovalRequest): Promise<ApprovalAnswer> => {
    asked.push(input);
    return Promise.resolve((answers[asked.length - 1] ?? no)());
  };
  return { asked, approvals: createApprovals({ ask }) };
};
const yes = (): ApprovalAnswer => true;
const no = (): ApprovalAnswer => false;

/** Ends the bank, by what it noted of itself, so that nobody else is ended; clients of SDK 2 try another first. */
const killed = async (kept: Ledger): Promise<void> => {
  const alive = (): number[] =>
    kept
      .lines()
      .flatMap((line) => (line.startsWith('pid ') ? [Number(line.slice(4))] : []))
      .filter(isAlive);
  await until(() => alive().length === 1, BUSY_MS);
  for (const pid of alive()) process.kill(pid, 'SIGKILL');
  await until(() => alive().length === 0, BUSY_MS);
};

describe.each<[string, Make]>([
  ['the proxy', throughProxy],
  ['a provider', ofProvider],
  ['a guarded client of 2026', guarded],
])('approvals before a bank that dies, with %s', (_name, make) => {
  it.each(['kill', 'exit', 'freeze', 'hang', 'throw'])(
    'R-22.2 R-2.5 %s after the effect: one yes is one payment, and the same call again asks anew',
    async (then) => {
      using kept = ledger();
      const { asked, approvals } = people(yes, no);
      await using at = await make(kept, { approvals });
      expect(await at.pay(7, then)).toMatch(/may have|ECONNRESET/);
      expect(asked).toEqual([{ amount: 7, then }]);
      expect(await at.pay(7, then)).toMatch(/approv|refus|not allowed|permi/i);
      expect([asked.length, kept.count('pay 7')]).toEqual([2, 1]);
    },
  );

  it('R-22.2 dead before the effect: a yes pays once or not at all, and no other amount', async () => {
    using kept = ledger();
    const late = async (): Promise<ApprovalAnswer> => {
      await killed(kept);
      await at.lost();
      return true;
    };
    const { asked, approvals } = people(late, no);
    await using at = await make(kept, { approvals });
    const said = await at.pay(7);
    expect(said).toMatch(at.restarts ? /paid 7/ : /did not run|was not called|could not be reached/i);
    await at.pay(8);
    expect(asked).toEqual([{ amount: 7 }, { amount: 8 }]);
    expect([kept.count('pay 7'), kept.count('pay 8')]).toEqual([at.restarts ? 1 : 0, 0]);
  });

  it('R-22.2 over a restart: the answer is for that call, that amount, and one payment', async () => {
    using kept = ledger();
    using files = folder();
    const store = (): ReturnType<typeof sqliteStore> => sqliteStore(join(files.path, 'calls.db'));
    /** Whoever is asked answers in the store, later. */
    const leaving = (): Approvals => createApprovals({ ask: () => EMPTY, onLeave: 'keep', pollMs: 50 });
    {
      const approvals = leaving();
      await using at = await make(kept, { approvals, store: store() });
      const waiting = at.pay(7, 'kill').catch(String);
      await expect.poll(() => approvals.pending()).toHaveLength(1);
      await at[Symbol.asyncDispose]();
      await waiting;
      expect(kept.count('pay 7')).toBe(0);
    }
    const approvals = leaving();
    await using at = await make(kept, { approvals, store: store() });
    const other = at.pay(8).catch(String);
    await expect.poll(() => approvals.pending()).toHaveLength(2);
    const asked = (await approvals.pending()).find(({ input }) => JSON.stringify(input).includes('7'));
    await approvals.answer(asked?.id ?? '', true);
    expect(await at.pay(7, 'kill')).toContain('may have');
    const again = at.pay(7, 'kill').catch(String);
    await expect.poll(() => approvals.pending()).toHaveLength(2);
    expect([kept.count('pay 7'), kept.count('pay 8')]).toEqual([1, 0]);
    for (const { id } of await approvals.pending()) await approvals.answer(id, false);
    await Promise.all([other, again]);
    expect([kept.count('pay 7'), kept.count('pay 8')]).toEqual([1, 0]);
  });
});
