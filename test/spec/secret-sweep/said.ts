import { Observable, concat, of, throwError } from 'rxjs';
import { plan, tool } from 'spillway';
import { createBudget } from 'spillway/gates';
import { again, called, failing, failure, giving, once, request, turned, type Place } from './kit.ts';

/** What tools say, and what things are called. */
export const SAID: Readonly<Record<string, Place>> = {
  'an error’s message': failure(({ text }) => new Error(text)),
  'a text that is thrown': failure(({ text }) => text),
  'an error’s cause': failure(({ text }) => new Error('failed', { cause: new Error(text) }), false),
  'an AggregateError': failure(({ text }) => new AggregateError([new Error(text)], 'all failed'), false),
  'an error’s details': failure(
    ({ text, name }) =>
      Object.assign(new Error('failed'), {
        details: { [name]: text },
        response: { headers: { [name]: name } },
        stack: text,
      }),
    false,
  ),
  'an error’s code': failure(({ name }) => Object.assign(new Error('failed'), { code: name })),
  'an error’s name': failure(({ name }) => Object.assign(new Error('failed'), { name }), false),
  'an error that is no text': failure(({ text, name }) => ({ [name]: text }), false),
  'an error at the edge of what is read': failure(({ name }) => new Error(`${'.'.repeat(4096 - 10)} ${name}`), false),
  'an output': {
    told: false,
    layer: ({ text, name }) => ({ tools: [tool({ name: 'a', policy: once, execute: () => ({ [name]: text }) })] }),
  },
  'a captured key of an output': {
    told: true,
    layer: ({ text, name }) => ({
      tools: [tool({ name: 'a', policy: once, execute: () => ({ all: { [name]: [text, { [name]: name }] } }) })],
      capture: { a: { output: ['all'] } },
    }),
  },
  'a captured key of an input': {
    ...request(({ text, name }) => ({ input: { all: { [name]: text, list: [[name]] } } })),
    layer: () => ({ tools: [giving('a')], capture: { a: { input: ['all'] } } }),
  },
  'values of a stream': {
    told: false,
    layer: ({ name }) => ({
      tools: [tool({ name: 'a', policy: once, execute: () => of(name.slice(0, 12), name.slice(12), name) })],
    }),
  },
  'a stream that breaks': {
    told: true,
    layer: ({ text }) => ({
      tools: [
        tool({
          name: 'a',
          policy: once,
          execute: () =>
            concat(
              of(text),
              throwError(() => new Error(text)),
            ),
        }),
      ],
    }),
  },
  progress: {
    told: true,
    layer: ({ text, name }) => ({
      tools: [
        tool({
          name: 'a',
          policy: once,
          execute: (_: unknown, { progress }) => {
            progress({ message: text, progress: 1, [name]: text });
            return 1;
          },
        }),
      ],
    }),
  },
  'what an attempt says that it used': {
    told: false,
    layer: ({ text, name }) => ({
      budget: createBudget({ per: 'session', usd: 1 }),
      tools: [
        tool({
          name: 'a',
          policy: once,
          execute: (_: unknown, { usage }) => {
            try {
              usage?.({ usd: text, [name]: text } as never);
            } catch {
              // It refuses what is no amount.
            }
            return 1;
          },
        }),
      ],
    }),
    run: (layer) => called(layer, { toolName: 'a', session: 's' }),
  },
  'the name of a tool': {
    told: true,
    layer: ({ name, text }) => ({ tools: [failing(() => new Error(text), again, name)] }),
    run: (layer, { name }) => called(layer, { toolName: name }),
  },
  'the name of a tool that is not there': request(({ name }) => ({ toolName: name })),
  'the name of an alternative': {
    told: true,
    layer: ({ name }) => ({ tools: [failing(() => new Error('x'), { ...once, alternatives: [name] }), giving(name)] }),
  },
  'the name of a breaker': {
    told: true,
    layer: ({ name }) => ({ tools: [failing(() => new Error('x'))], breakerKey: () => name }),
  },
  'the name of a dependency': {
    told: true,
    layer: ({ name }) => ({ tools: [tool({ name: 'a', policy: again, dependency: name, execute: () => 1 })] }),
  },
  'a code that a policy classifies': {
    told: true,
    layer: ({ name }) => ({ tools: [giving('a', { ...once, classification: { [name]: 'permanent' } })] }),
  },
  'the path of a volatile field': {
    told: true,
    layer: ({ name }) => ({ tools: [giving('a', { ...once, dedupe: { volatile: [name] } })] }),
  },
  'a session, an actor, a tenant': request(({ name }) => ({ session: name, actor: name, tenant: name })),
  'a key': request(({ name }) => ({ idempotencyKey: name, session: 's' }), false),
  'the id of a call': request(({ name }) => ({ toolCallId: name })),
  'a trace context': request(({ name }) => ({ traceparent: name }), true),
  'the ids of a plan': {
    told: true,
    layer: ({ text }) => ({ tools: [giving('a'), failing(() => new Error(text), once, 'b')] }),
    run: (layer, { name }) =>
      turned(
        layer,
        plan.from([
          { id: `${name}1`, tool: 'b', input: {} },
          { id: `${name}2`, tool: 'a', input: {}, needs: [`${name}1`] },
          { id: `${name}3`, tool: 'a', input: {}, needs: [`${name}2`], optional: true },
        ]),
        { session: name },
      ),
  },
  'a plan’s default': {
    told: true,
    layer: ({ text }) => ({ tools: [giving('a'), failing(() => new Error(text), once, 'b')] }),
    run: (layer, { name, text }) =>
      turned(
        layer,
        plan.from([
          { id: `${name}1`, tool: 'b', input: { [name]: text } },
          { id: 'n', tool: 'a', input: {}, needs: [`${name}1`], default: { [name]: text } },
        ] as never),
      ),
  },
  'a tool that is left alone': {
    told: true,
    layer: ({ text }) => ({ tools: [failing(() => new Error(text), { ...again, mode: 'shadow' })] }),
  },
  'an observable that never was one': {
    told: true,
    layer: ({ text }) => ({
      tools: [
        tool({
          name: 'a',
          policy: once,
          execute: () =>
            new Observable(() => {
              throw new Error(text);
            }),
        }),
      ],
    }),
  },
};
