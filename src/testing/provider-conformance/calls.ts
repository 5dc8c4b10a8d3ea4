import { isToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import { check, told, within, type Bench, type BenchCase } from './check.ts';

/** A sibling that must not be touched answers after this. */
const SIBLING_MS = 500;
/** "At once", on a busy machine. */
const AT_ONCE_MS = 1_000;
const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  baggage: { tenant: 'a b' },
} as const;

/** Providers wrap what a tool says as their protocol has it. */
const contains = (output: unknown, text: string): boolean => JSON.stringify(output ?? null).includes(text);

const reached = ({ backend, eventually }: Bench, count: number): Promise<void> =>
  eventually(async () => (await backend.calls()).length >= count, `${count} calls should reach the backend`);

const states = async ({ backend }: Bench): Promise<string> =>
  (await backend.calls()).map(({ state }) => state).join(', ');

/** How calls go that nothing disturbs but their caller. */
export const callCases: readonly BenchCase[] = [
  {
    name: 'a call is answered',
    run: async ({ call, calls }) => {
      const { status, output, error } = await call(calls.echo('hello', 0));
      check(
        status === 'success' && contains(output?.content, 'hello'),
        `echo should answer hello; got ${status}, ${JSON.stringify(output?.content ?? error)}`,
      );
    },
  },
  {
    name: 'calls at the same time get their own answers',
    run: async ({ call, calls }) => {
      const texts = Array.from({ length: 20 }, (_, index) => `text-${index}-end`);
      const results = await Promise.all(texts.map((text, index) => call(calls.echo(text, (index * 13) % 60))));
      results.forEach(({ output, error }, index) =>
        check(
          contains(output?.content, texts[index] ?? ''),
          `the call of ${texts[index]} got ${JSON.stringify(output?.content ?? error)}`,
        ),
      );
    },
  },
  {
    name: 'an aborted call settles at once, the backend hears of it, and its sibling goes on',
    run: async (bench) => {
      const { call, calls, failure, eventually } = bench;
      const controller = new AbortController();
      const hanging = call(calls.hang(), { signal: controller.signal });
      await reached(bench, 1);
      const sibling = call(calls.echo('sibling', SIBLING_MS));
      await reached(bench, 2);
      controller.abort();
      const error = await failure(within(hanging, AT_ONCE_MS, 'Settling after the abort'));
      check(
        error.kind === 'canceled' && error.executed,
        `an aborted call should be canceled and executed, not ${error.kind}, executed ${error.executed}`,
      );
      await eventually(async () => (await states(bench)).includes('aborted'), 'the backend should see the abort');
      const { status } = await sibling;
      check(status === 'success', `the sibling of an aborted call should succeed, not ${status}`);
    },
  },
  {
    name: 'a tool whose signal is aborted says canceled, if it says anything',
    run: async (bench) => {
      const { calls, execute } = bench;
      const controller = new AbortController();
      const work = execute(calls.hang(), controller.signal).then(
        (value) => ({ value }),
        (thrown: unknown) => ({ thrown }),
      );
      await reached(bench, 1);
      controller.abort();
      // One that ignores its signal is ended by the layer.
      const end = await within(work, AT_ONCE_MS, 'Settling after the abort').catch(() => undefined);
      if (end === undefined) return;
      check(
        'thrown' in end,
        `an aborted call should not be answered; it gave ${JSON.stringify('value' in end ? end.value : undefined)}`,
      );
      const error = toToolExecutionError(end.thrown);
      check(error.kind === 'canceled', `an aborted call should fail with canceled; it was ${told(error)}`);
      check(
        !isToolExecutionError(end.thrown) || error.executed,
        `an aborted call that had reached the backend should be executed; it was ${told(error)}`,
      );
    },
  },
  {
    name: 'a call aborted before it begins does not reach the backend',
    run: async ({ call, calls, backend, failure }) => {
      const error = await failure(call(calls.echo('never', 0), { signal: AbortSignal.abort() }));
      check(
        error.kind === 'canceled' && !error.executed,
        `it should be canceled and not executed, not ${error.kind}, executed ${error.executed}`,
      );
      check((await backend.calls()).length === 0, 'no call should reach the backend');
    },
  },
  {
    name: 'progress arrives while the call runs',
    about: 'progress',
    run: async ({ call, calls, layer }) => {
      const seen: string[] = [];
      layer.trace$.subscribe(({ type }) => seen.push(type));
      const { status } = await call(calls.steps?.() ?? calls.hang());
      check(status === 'success', `the call should succeed, not ${status}`);
      const early = seen.slice(0, seen.indexOf('settled')).filter((type) => type === 'progress').length;
      check(early >= 1, `progress should arrive before the answer; the events were ${seen.join(', ')}`);
    },
  },
  {
    name: 'the key and the trace context of a call reach the backend',
    run: async ({ call, calls, backend }) => {
      await call(calls.echo('first', 0), { key: 'key-1', trace: TRACE });
      await call(calls.echo('second', 0), { key: 'key-1' });
      await call(calls.echo('third', 0));
      const [first, second, third] = await backend.calls();
      check(first?.callKey !== undefined && first.callKey !== '', 'the first call should carry its key');
      check(
        first.callKey === second?.callKey,
        `two calls with one key should carry the same, not ${first.callKey} and ${second?.callKey}`,
      );
      check(
        third?.callKey !== undefined && third.callKey !== first.callKey,
        'a call without a key of its own should carry one that no other has',
      );
      check(
        first.traceparent === TRACE.traceparent,
        `traceparent should be ${TRACE.traceparent}, not ${first.traceparent}`,
      );
      check(first.baggage === 'tenant=a%20b', `baggage should be tenant=a%20b, not ${first.baggage}`);
      check(
        third.traceparent === undefined && third.baggage === undefined,
        'a call without trace context should carry none',
      );
    },
  },
];
