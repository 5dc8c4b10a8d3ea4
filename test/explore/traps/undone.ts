import type { CompensateContext } from '../../../src/contract.ts';
import { tool, type PlanNode } from '../../../src/index.ts';
import type { World } from '../../../src/explore/index.ts';
import { KEYED, PATIENT, book, look, steps, ticket, ticketAfter, type Case, type Trap } from './kit.ts';

interface Id {
  readonly id: string;
}

const BOOKED: PlanNode = { id: 'room', tool: 'room' };

/** A room that is booked, before a ticket that cannot be had: so the room has to be given back. */
const room = (
  compensate: (world: World, output: Id, context: CompensateContext) => unknown,
  policy: object = { compensate: { enforcesKey: true } },
): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...KEYED, ...policy },
      execute: (_: unknown, { callKey }): Id => book(world, callKey),
      verify: (_, { callKey }) => look(world, callKey),
      compensate: (output, context) => compensate(world, output, context) as undefined,
    }),
  ],
});
const remove = (world: World, { id }: Id): unknown => world.remove(id);

const throws: Trap = {
  name: 'an undoing that throws after it has undone, and takes the next attempt for a failure',
  finds: 'uncompensated',
  at: 'room',
  broken: room((world, { id }) => {
    if (!id.startsWith('room')) throw new TypeError(`cannot read the number of ${id}`);
    return world.remove(id);
  }),
  mended: room(remove),
};

/** A refund is money: it is made as often as it is asked for, and nobody can look whether it was. */
const refunded = (isSafe: boolean): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world, 1),
    tool({
      name: 'room',
      policy: { ...KEYED, compensate: { enforcesKey: true } },
      execute: (_: unknown, { callKey }): Id => book(world, callKey),
      compensate: ({ id }) => {
        if (!isSafe || world.has(id)) world.reverse(id);
      },
    }),
  ],
  options: { faults: ['fails_before', 'fails_after', 'hangs', 'loses_answer'] },
});
const refunds: Trap = {
  name: 'an undoing that is no less an effect than what it undoes, declared as harmless when repeated',
  finds: 'twice',
  at: 'room',
  broken: refunded(false),
  mended: refunded(true),
};

const both = (twice: boolean): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...KEYED },
      execute: (_: unknown, { callKey }): Id => book(world, callKey),
      verify: (_, { callKey }) => look(world, callKey),
      compensate: async ({ id }) => {
        world.reverse(id);
        await world.sleep(10);
        if (twice) world.reverse(id);
      },
    }),
  ],
});
const undoesTwice: Trap = {
  name: 'an undoing that undoes twice by itself',
  finds: 'twice',
  at: 'room',
  broken: both(true),
  mended: both(false),
};

/** Two nodes that need the same account, opened once. */
const account = (shares: boolean): Case => ({
  plan: steps([
    { id: 'cash', tool: 'account', input: { of: 'ada' } },
    { id: 'stock', tool: 'account', input: { of: 'ada' }, needs: ['cash'] },
    ticketAfter('stock'),
  ]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'account',
      policy: { ...KEYED, compensate: { enforcesKey: true } },
      execute: (_: { of: string }, { callKey }) => book(world, shares ? 'account of ada' : callKey),
      verify: (_, { callKey }) => look(world, shares ? 'account of ada' : callKey),
      // Closing an account costs a fee each time.
      compensate: ({ id }) => (shares || world.has(id) ? world.reverse(id) : undefined),
    }),
  ],
});
const sharedEffect: Trap = {
  name: 'one effect of two nodes, undone by both',
  finds: 'twice',
  at: 'cash',
  broken: account(true),
  mended: account(false),
};

/** The answer of the hotel has a number, and the tool drops it. */
const numbered = (keeps: boolean): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...KEYED, compensate: { enforcesKey: true } },
      execute: (_: unknown, { callKey }): { id?: string; state: string } => {
        const { id } = book(world, `hotel ${callKey}`);
        return keeps ? { id, state: 'booked' } : { state: 'booked' };
      },
      verify: (_, { callKey }) => {
        const id = `hotel ${callKey}`;
        if (!world.has(id)) return { done: false };
        return { done: true, output: keeps ? { id, state: 'booked' } : { state: 'booked' } };
      },
      compensate: ({ id }) => world.remove(String(id)),
    }),
  ],
});
const losesId: Trap = {
  name: 'an output that loses the number which the undoing needs',
  finds: 'uncompensated',
  at: 'room',
  broken: numbered(false),
  mended: numbered(true),
};

/** What verify gives in place of the answer is what the undoing gets. */
const verifiedRoom = (keeps: boolean): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...PATIENT, verify: { settleMs: 1_000 }, compensate: { enforcesKey: true } },
      execute: (_: unknown, { callKey }): Id => {
        world.add(callKey);
        return { id: callKey };
      },
      verify: (_, { callKey }) =>
        world.has(callKey) ? { done: true, output: { id: keeps ? callKey : 'found' } } : { done: false },
      compensate: ({ id }) => world.remove(id),
    }),
  ],
});
const verifyLosesId: Trap = {
  name: 'a verify that finds the room, and gives another number than the one it has',
  finds: 'uncompensated',
  at: 'room',
  broken: verifiedRoom(false),
  mended: verifiedRoom(true),
};

/** A server that acts half a second after its caller has gone. */
const tooEarly = (settleMs: number): Case => ({
  plan: steps([BOOKED, ticketAfter()]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...PATIENT, verify: { settleMs }, compensate: { enforcesKey: true } },
      execute: (_: unknown, { callKey }): Id => {
        world.add(callKey);
        return { id: callKey };
      },
      verify: (_, { callKey }) => (world.has(callKey) ? { done: true, output: { id: callKey } } : { done: false }),
      compensate: ({ id }) => world.remove(id),
    }),
  ],
  options: { lateMs: 500 },
});
const undoneBeforeKnown: Trap = {
  name: 'an undoing that is decided before it can be known what there is to undo',
  finds: 'uncompensated',
  at: 'room',
  broken: tooEarly(0),
  mended: tooEarly(1_000),
};

/** A step of the plan that cleans up by itself, before anybody has looked. */
const cleaned = (byItself: boolean): Case => ({
  plan: steps([
    BOOKED,
    ...(byItself ? [{ id: 'tidy', tool: 'tidy', needs: ['room'], default: { id: 'none' } }] : []),
    ticketAfter(byItself ? 'tidy' : 'room'),
  ]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'tidy',
      policy: { ...PATIENT, effects: 'mutating', enforcesKey: true, compensate: false },
      execute: () => void world.remove('the room'),
    }),
    tool({
      name: 'room',
      policy: byItself
        ? { ...PATIENT, effects: 'mutating', compensate: false }
        : { ...PATIENT, verify: { settleMs: 1_000 }, compensate: { enforcesKey: true } },
      execute: (): Id => {
        world.add('the room');
        return { id: 'the room' };
      },
      ...(byItself
        ? {}
        : {
            verify: () => (world.has('the room') ? { done: true, output: { id: 'the room' } } : { done: false }),
            compensate: ({ id }: Id) => world.remove(id),
          }),
    }),
  ],
});
const tidiesItself: Trap = {
  name: 'a step of the plan that undoes what may still come, in place of a compensate',
  finds: 'uncompensated',
  at: 'room',
  broken: cleaned(true),
  mended: cleaned(false),
};

/** The parcel that is called back has left with its insurance, which is canceled first. */
const nothingToUndo = (isSaid: boolean): Case => ({
  plan: steps([BOOKED, ticketAfter('room')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'room',
      policy: { ...KEYED, ...(isSaid ? { compensate: { enforcesKey: true } } : {}) },
      execute: (_: unknown, { callKey }): Id => book(world, callKey),
      verify: (_, { callKey }) => look(world, callKey),
      ...(isSaid ? { compensate: ({ id }: Id) => world.remove(id) } : {}),
    }),
  ],
});
const noUndoing: Trap = {
  name: 'a booking that nobody has said how to undo',
  finds: 'uncompensated',
  at: 'room',
  broken: nothingToUndo(false),
  mended: nothingToUndo(true),
};

export const UNDONE: readonly Trap[] = [
  throws,
  refunds,
  undoesTwice,
  sharedEffect,
  losesId,
  verifyLosesId,
  undoneBeforeKnown,
  tidiesItself,
  noUndoing,
];
