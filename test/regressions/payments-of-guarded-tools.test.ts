// Was: on a shared layer, with a swallowed error, or with one that proves nothing, a guarded payment was made up to
// five times. Now: once, over every framework.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ToolExecutionError, createSpillway, tool, type ToolPolicy } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { loadAll } from '../adapters/frameworks/all.ts';
import { PAYING, type Pay } from '../adapters/frameworks/payments.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

let folder = '';
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spillway-payments-'));
  await loadAll();
}, SIDE_INSTALL_TIMEOUT_MS);
afterAll(() => rm(folder, { recursive: true, force: true }));

const fast: ToolPolicy = { retry: { initialDelayMs: 1, jitterPercent: 0 } };
const HANG_MS = 50;

/** A layer as the adapter makes it, and one that is given to it. */
const LAYERS: ReadonlyArray<readonly [string, (defaults: ToolPolicy) => GuardLayerOptions]> = [
  ['its own layer', (defaults) => ({ defaults })],
  ['a shared layer', (defaults) => ({ spillway: createSpillway({ defaults }) })],
];

const withFields = (message: string, fields: object): Error => Object.assign(new Error(message), fields);

/** What goes wrong once the payment was made. */
const AFTER_THE_EFFECT: Readonly<Record<string, () => Promise<string>>> = {
  ECONNRESET: () => Promise.reject(withFields('read ECONNRESET', { code: 'ECONNRESET' })),
  'a socket that hung up, in words': () => Promise.reject(new Error('socket hang up')),
  'a bare error': () => Promise.reject(new Error('could not write the receipt')),
  'a TypeError': () => Promise.reject(new TypeError("Cannot read properties of undefined (reading 'id')")),
  'an assertion': () => Promise.reject(withFields('Expected values to be strictly equal', { code: 'ERR_ASSERTION' })),
  'a string': () => Promise.reject('sorry'),
  'HTTP 500': () => Promise.reject(withFields('Internal Server Error', { status: 500 })),
  'HTTP 502': () => Promise.reject(withFields('Bad Gateway', { status: 502 })),
  'HTTP 504': () => Promise.reject(withFields('Gateway Timeout', { status: 504 })),
  'HTTP 401': () => Promise.reject(withFields('Unauthorized', { status: 401 })),
  'a hang': () => new Promise(() => undefined),
};

/** A shell that writes into a ledger, and then ends as told: counts the lines. */
const SHELL: Readonly<Record<string, string>> = {
  'a shell that exits with 1': 'exit 1',
  'a shell that is killed': 'kill -9 $$',
  'a shell that exits with 255': 'exit 255',
};

describe.each(PAYING)('$name', ({ pay }) => {
  describe.each(LAYERS)('on %s', (_layer, optionsOf) => {
    const charges = async (after: () => Promise<string>, defaults: ToolPolicy = fast): Promise<number> => {
      let charged = 0;
      const execute: Pay = () => {
        charged++;
        return after();
      };
      await pay(execute, optionsOf({ ...defaults, timeoutMs: HANG_MS })).catch(() => undefined);
      return charged;
    };

    it.each(Object.entries(AFTER_THE_EFFECT))('R-2.5 %s after the effect: paid once', async (_name, after) => {
      expect(await charges(after)).toBe(1);
    });

    it.each(Object.entries(SHELL))('R-2.5 %s: run once', async (_name, end) => {
      const ledger = join(folder, `ledger-${files++}`);
      const execute: Pay = async () =>
        (await promisify(execFile)('sh', ['-c', `echo paid >> "$0"; ${end}`, ledger])).stdout;
      await pay(execute, optionsOf(fast)).catch(() => undefined);
      expect(await readFile(ledger, 'utf8')).toBe('paid\n');
    });
  });

  it('R-2.5 what is known not to have run is tried again, and so is a tool that only reads', async () => {
    const tries = async (failure: unknown, effects: ToolPolicy): Promise<number> => {
      let tried = 0;
      const execute: Pay = () => (++tried < 3 ? Promise.reject(failure) : Promise.resolve('paid'));
      await pay(execute, { defaults: fast, policies: { pay: effects } }).catch(() => undefined);
      return tried;
    };
    expect(await tries(new Error('busy'), { effects: 'read' })).toBe(3);
  });
});

describe('what a thrown error proves', () => {
  const [aiSdk] = PAYING;
  const tries = async (failure: unknown): Promise<number> => {
    let tried = 0;
    const execute: Pay = () => (++tried < 3 ? Promise.reject(failure) : Promise.resolve('paid'));
    await aiSdk?.pay(execute, { defaults: fast });
    return tried;
  };

  it.each<[string, unknown, number]>([
    ['a refused connection', withFields('connect ECONNREFUSED', { code: 'ECONNREFUSED' }), 3],
    ['HTTP 503', withFields('Service Unavailable', { status: 503 }), 3],
    ['HTTP 429', withFields('Too Many Requests', { status: 429 }), 3],
    [
      'a word of the tool’s author that it did not run',
      new ToolExecutionError('transport_error', 'refused', { executed: false }),
      3,
    ],
    ['a typed error that its author calls certain', new ToolExecutionError('execution_error', 'try again'), 3],
    [
      'a typed error that its author calls uncertain',
      new ToolExecutionError('execution_error', 'half done', { uncertain: true }),
      1,
    ],
    ['nothing', new Error('oops'), 1],
  ])('R-2.5 %s', async (_name, failure, times) => {
    expect(await tries(failure)).toBe(times);
  });

  it('R-2.5 an alternative on the adapter’s own layer that says nothing of itself writes, too', async () => {
    let paid = 0;
    const backup = tool({
      name: 'backup',
      execute: () => {
        paid++;
        throw withFields('reset', { code: 'ECONNRESET' });
      },
    });
    const gone: Pay = () => Promise.reject(withFields('gone', { status: 410 }));
    await aiSdk?.pay(gone, { defaults: fast, tools: [backup], policies: { pay: { alternatives: ['backup'] } } });
    expect(paid).toBe(1);
  });

  it('R-2.5 a shared layer that says its tools only read is believed, and one that is silent is not', async () => {
    const times = async (defaults: ToolPolicy, policies: Record<string, ToolPolicy> = {}): Promise<number> => {
      let tried = 0;
      const execute: Pay = () =>
        ++tried < 3 ? Promise.reject(withFields('reset', { code: 'ECONNRESET' })) : Promise.resolve('read');
      await aiSdk?.pay(execute, { spillway: createSpillway({ defaults: { ...fast, ...defaults } }), policies });
      return tried;
    };
    expect([
      await times({}),
      await times({ effects: 'read' }),
      await times({}, { pay: { effects: 'read' } }),
      await times({ effects: 'read' }, { pay: { effects: 'mutating' } }),
    ]).toEqual([1, 3, 3, 1]);
  });
});
