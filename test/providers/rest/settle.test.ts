import { lastValueFrom, toArray } from 'rxjs';
import { createSpillway, plan, type Spillway } from 'spillway';
import { restProvider, type RestManifest } from 'spillway/providers/rest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { turnResultOf } from '../../call/kit.ts';
import { json, restServer } from './kit.ts';

const bankAt = (base_url: string): RestManifest => ({
  name: 'bank',
  base_url,
  tools: [
    {
      id: 'transfer',
      method: 'POST',
      url: '/transfers/{reference}',
      retry_policy: { initial_delay_ms: 1 },
      verify: {
        tool: 'find',
        input: { reference: '${input.reference}' },
        done: { path: 'id', equals: '${input.reference}' },
        output: 'id',
        absent_on: [404],
        settle_ms: 0,
        delay_ms: 1,
      },
      compensate: { tool: 'cancel', input: { reference: '${input.reference}' }, owner: 'the bank' },
    },
    { id: 'find', method: 'GET', url: '/transfers/{reference}' },
    { id: 'cancel', method: 'DELETE', url: '/transfers/{reference}' },
    { id: 'notify', method: 'GET', url: '/nowhere' },
  ],
});

/** A bank that loses the first answers. */
const bank = async (lost: {
  acts: boolean;
  times: number;
}): Promise<{ layer: Spillway; booked: string[]; asked: () => string[] }> => {
  const server = await restServer();
  const booked: string[] = [];
  server.answer((request, response) => {
    const id = request.url?.split('/').at(-1) ?? '';
    const isLost = request.method === 'POST' && lost.times-- > 0;
    if (request.method === 'POST' && (!isLost || lost.acts)) booked.push(id);
    if (isLost) return void response.socket?.resetAndDestroy();
    if (request.method === 'DELETE') booked.splice(booked.indexOf(id), 1);
    return booked.includes(id) || request.method === 'DELETE'
      ? json({ id })(request, response)
      : json({}, 404)(request, response);
  });
  const layer = createSpillway({ providers: [restProvider(bankAt(server.url), { allow: ['127.0.0.1'] })] });
  onTestFinished(async () => {
    await layer.close();
    await server[Symbol.asyncDispose]();
  });
  return { layer, booked, asked: () => server.seen.map(({ method }) => method) };
};

const INPUT = { reference: 'r1' };

describe('a bank whose manifest says how it is verified and undone', () => {
  it.each([
    { acts: true, asked: ['POST', 'GET'], verified: 'done', attempts: 1 },
    { acts: false, asked: ['POST', 'GET', 'POST'], attempts: 2 },
  ])('R-18.3 a transfer whose answer is lost, made: $acts', async ({ acts, asked, ...told }) => {
    const at = await bank({ acts, times: 1 });
    expect(await at.layer.execute({ toolName: 'bank.transfer', input: INPUT })).toMatchObject({
      status: 'success',
      ...told,
    });
    expect([at.booked, at.asked()]).toEqual([['r1'], asked]);
  });

  it('R-18.5 what a turn transferred is canceled when it fails, also where its answer was lost', async () => {
    const at = await bank({ acts: true, times: 1 });
    const trip = plan.from(
      [
        { id: 'pay', tool: 'bank.transfer', input: INPUT },
        { id: 'tell', tool: 'bank.notify', needs: ['pay'] },
      ],
      { onFailure: 'compensate' },
    );
    const events = await lastValueFrom(at.layer.turn(trip).pipe(toArray()));
    expect(turnResultOf(events).compensation).toMatchObject({ compensated: ['pay'], stays: [] });
    expect([at.booked, at.asked()]).toEqual([[], ['POST', 'GET', 'GET', 'DELETE']]);
  });
});
