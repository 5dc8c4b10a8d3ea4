// A trip whose payment is refused: what was booked is undone, and an answer that was lost is looked up before that.
import { createSpillway, plan, tool } from 'spillway';
import * as z from 'zod';

/** The travel agency: what is booked, by key. Its answer about the hotel gets lost. */
const bookings = new Map<string, string>();

const booking = <const Name extends string>(name: Name, losesAnswer = false) =>
  tool({
    name,
    input: z.object({ city: z.string() }),
    policy: {
      timeoutMs: 200,
      retry: { maxTotalTimeMs: 10_000 },
      // How late the agency can still act after we have hung up. After that, "not booked" stays so.
      verify: { settleMs: 100 },
      compensate: { enforcesKey: true, owner: 'the travel desk' },
    },
    execute: ({ city }, { callKey }) => {
      bookings.set(callKey, `${name} in ${city}`);
      console.log(`booked: ${name} in ${city}`);
      return losesAnswer ? new Promise<never>(() => undefined) : { key: callKey };
    },
    // Only looks.
    verify: (_, { callKey }) => {
      console.log(`asked: was there a ${name}?`);
      return bookings.has(callKey) ? { done: true, output: { key: callKey } } : { done: false };
    },
    compensate: ({ key }, { reason }) => {
      console.log(`undone: ${bookings.get(key)}, since the turn ended ${reason}`);
      bookings.delete(key);
    },
  });

const pay = tool({
  name: 'pay',
  policy: { effects: 'mutating' },
  execute: () => {
    throw Object.assign(new Error('the card was refused'), { status: 402 });
  },
});

const trip = plan({ onFailure: 'compensate', name: 'trip' })
  .call('flight', booking('book_flight'), { city: 'Bergen' })
  .call('hotel', booking('book_hotel', true), { city: 'Bergen' }, { needs: ['flight'] })
  .call('payment', pay, undefined, { needs: ['hotel'] });

const spillway = createSpillway();
// Turns of processes that died: with a store that outlives them, `store: sqliteStore(path)`.
await spillway.resume({ plans: [trip] });

await spillway.turn(trip).forEach((event) => {
  if (event.source === 'call' && event.type === 'verified') console.log(`verified: ${event.toolName} ${event.finding}`);
  if (event.source !== 'turn' || event.type !== 'settled') return;
  const { summary, compensation } = event.result;
  console.log(`${summary}. Stays: ${compensation?.stays.length ?? 0}`);
});
await spillway.close();
