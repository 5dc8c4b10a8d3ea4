import { of } from 'rxjs';
import { plan, tool, type Hooks, type Tool } from 'spillway';
import { createApprovals, createBudget, type ApprovalAnswer } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { called, failing, giving, once, request, turned, type Place, type Secret } from './kit.ts';

const asking = (
  told: boolean,
  answer: (secret: Secret) => ApprovalAnswer | Error,
  input: (secret: Secret) => unknown = () => 1,
): Place => ({
  told,
  layer: (secret) => ({
    tools: [tool({ name: 'a', policy: once, needsApproval: true, execute: () => 1 })],
    approvals: createApprovals({
      ask: () => {
        const given = answer(secret);
        if (given instanceof Error) throw given;
        return of(given);
      },
    }),
  }),
  run: (layer, secret) => called(layer, { toolName: 'a', input: input(secret) }),
});

const undone = (undo: (secret: Secret) => Tool['execute'], more: (secret: Secret) => object = () => ({})): Place => ({
  told: true,
  layer: (secret) => ({
    tools: [
      tool({
        name: 'book',
        policy: { effects: 'mutating', retry: { maxAttempts: 1 }, compensate: { tool: 'undo' } },
        execute: () => 1,
        ...more(secret),
      } as never),
      tool({ name: 'undo', policy: { effects: 'mutating', retry: { maxAttempts: 1 } }, execute: undo(secret) }),
      failing(() => new Error('no'), once, 'pay'),
    ],
  }),
  run: (layer) =>
    turned(
      layer,
      plan.from(
        [
          { id: 'book', tool: 'book', input: {} },
          { id: 'pay', tool: 'pay', input: {}, needs: ['book'] },
        ],
        { onFailure: 'compensate' },
      ),
    ),
});

const storeOf =
  (act: (secret: Secret, method: string) => void, more: (secret: Secret) => object = () => ({})) =>
  (secret: Secret) => {
    const store = memoryStore();
    return new Proxy(store, {
      get: (target, key) => {
        const own = more(secret) as Readonly<Record<PropertyKey, unknown>>;
        if (key in own) return own[key];
        const value = Reflect.get(target, key) as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          act(secret, String(key));
          return (value as (...args: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  };

const thrown = (text: string): never => {
  throw new Error(text);
};

const hooked = (hooks: (text: string) => Hooks): Place =>
  request(
    () => ({}),
    true,
    ({ text }) => ({ hooks: hooks(text) }),
  );

/** What hosts, people and stores say around a call. */
export const AROUND: Readonly<Record<string, Place>> = {
  'a hook that blocks': hooked((text) => ({ beforeToolCall: () => ({ block: text }) })),
  'a hook that throws': hooked((text) => ({ afterToolCall: () => thrown(text) })),
  'the hook before a call': hooked((text) => ({ prepareCall: () => thrown(text) })),
  'an error handler’s reason': {
    told: true,
    layer: ({ text }) => ({
      tools: [failing(() => new Error('x'))],
      errorHandler: () => ({ strategy: 'escalate', code: 'permanent', reason: text }),
    }),
  },
  'what a person is asked about': asking(
    false,
    () => true,
    ({ text, name }) => ({ [name]: text, password: 'marzipan' }),
  ),
  'a person’s remark': asking(true, ({ text, name }) => ({ approved: false, by: name, reason: text })),
  'a person’s name': asking(true, ({ name }) => ({ approved: true, by: name })),
  'a person who cannot be asked': asking(true, ({ text }) => new Error(text)),
  'a budget’s session': {
    told: true,
    layer: () => ({ tools: [giving('a')], budget: createBudget({ per: 'session', calls: 1 }) }),
    run: async (layer, { name }) => [
      await called(layer, { toolName: 'a', session: name }),
      await called(layer, { toolName: 'a', session: name, input: 2 }),
    ],
  },
  'an undo that fails': undone(
    ({ text }) =>
      () =>
        thrown(text),
  ),
  'an undo whose input fails': undone(
    () => () => 1,
    ({ text }) => ({
      policy: { effects: 'mutating', retry: { maxAttempts: 1 } },
      compensate: () => thrown(text),
    }),
  ),
  'a question whether it was done': {
    told: true,
    layer: ({ text }) => ({
      tools: [
        tool({
          name: 'a',
          policy: { effects: 'mutating', retry: { maxAttempts: 1 } },
          verify: () => thrown(text),
          execute: (): never => {
            throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
          },
        } as never),
      ],
    }),
  },
  'a tool’s description': {
    told: false,
    layer: ({ text }) => ({ tools: [tool({ name: 'a', description: text, policy: once, execute: () => 1 })] }),
  },
  'a store that throws': {
    ...request(() => ({ idempotencyKey: 'k', session: 's' })),
    layer: (secret) => ({
      tools: [giving('a')],
      store: storeOf(({ text }, method) => {
        if (method === 'setIfNotExists') thrown(text);
      })(secret),
    }),
  },
  'a journal that cannot be kept': {
    ...undone(() => () => 1),
    layer: (secret) => ({
      ...undone(() => () => 1).layer(secret),
      store: storeOf(({ text }) => thrown(text))(secret),
    }),
  },
  'a store’s own report': {
    ...request(() => ({ idempotencyKey: 'k', session: 's' }), false),
    layer: (secret) => ({
      tools: [giving('a')],
      store: storeOf(
        () => undefined,
        ({ text }) => ({
          report: () => ({ kind: 'own', durability: 'disk', shared: true, weak: true, warnings: [text] }),
        }),
      )(secret),
    }),
  },
};
