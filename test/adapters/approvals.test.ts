import { createSpillway } from 'spillway';
import { createApprovals } from 'spillway/gates';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { APPROVING } from './frameworks/approvals.ts';
import { loadAll } from './frameworks/all.ts';
import type { Pay } from './frameworks/kit.ts';

beforeAll(loadAll, SIDE_INSTALL_TIMEOUT_MS);

const AFTER_PAYING: Readonly<Record<string, Pay>> = {
  nothing: () => Promise.resolve('paid'),
  'a bare error': () => Promise.reject(new Error('could not write the receipt')),
  ECONNRESET: () => Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })),
  'HTTP 500': () => Promise.reject(Object.assign(new Error('Internal Server Error'), { status: 500 })),
  'a hang': () => new Promise(() => undefined),
};

const asksWithin = (name: string): boolean => /^(Genkit|Strands)|within|finished tool with requireC/.test(name);

describe.each(APPROVING)('%s', (name, approving) => {
  it('R-2.5 alone a person is asked once, and nothing is paid before', async () => {
    let paid = 0;
    const { asked, approve } = await approving(() => Promise.resolve(`paid ${++paid}`), undefined);
    expect([asked, paid]).toEqual([1, 0]);
    await approve();
    expect(paid).toBe(1);
  });

  it.each(Object.entries(AFTER_PAYING))(
    'R-2.5 guarded, %s after paying: asked once, nothing paid before, and once after',
    async (_fault, after) => {
      for (const guard of [
        { defaults: { timeoutMs: 50 } },
        { spillway: createSpillway({ defaults: { timeoutMs: 50 } }) },
      ]) {
        let paid = 0;
        const { asked, approve } = await approving(() => {
          paid++;
          return after();
        }, guard);
        expect([asked, paid]).toEqual([1, 0]);
        await approve();
        expect(paid).toBe(1);
      }
    },
  );

  it('R-10.1 under a key of the call: a pause is not what the key remembers, and what was paid is', async () => {
    let paid = 0;
    const prepareCall = (): object => ({ idempotencyKey: 'payment 7' });
    const spillway = createSpillway({ hooks: { prepareCall } });
    const pay = (): Promise<string> => Promise.resolve(`paid ${++paid}`);
    const first = await approving(pay, { spillway });
    expect([first.asked, paid]).toEqual([1, 0]);
    await first.approve();
    expect(paid).toBe(1);
    const second = await approving(pay, { spillway });
    if (second.asked > 0) await second.approve();
    expect(paid).toBe(1);
    await spillway.close();
  });

  it.each([true, false])('R-22.1 a layer that has a person approve it, too, is not gone round: %s', async (isYes) => {
    let paid = 0;
    let own = 0;
    const approvals = createApprovals({
      ask: () => {
        own++;
        return isYes;
      },
    });
    const spillway = createSpillway({ approvals, defaults: { needsApproval: true } });
    const { asked, approve } = await approving(() => Promise.resolve(`paid ${++paid}`), { spillway });
    expect(paid).toBe(0);
    // Where the framework asks from within the tool the layer asks first, and again when it goes on.
    if (asksWithin(name)) expect(own).toBe(1);
    else expect([asked, own]).toEqual([1, 0]);
    await approve().catch(() => undefined);
    expect(paid).toBe(isYes ? 1 : 0);
    await spillway.close();
  });
});
