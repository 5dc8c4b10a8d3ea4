import { check, told, within, type BenchCase } from './check.ts';

const HANG_TIMEOUT_MS = 300;
const RETRY_AFTER_MS = 7_000;
/** Far below the calls' own timeout, far above what ending one takes. */
const CLOSED_MS = 3_000;
/** Stands in an input that does not fit: an error names the place, not the value. */
const CANARY = 'canary-in-the-input';

/** How calls fail, and how providers end. */
export const errorCases: readonly BenchCase[] = [
  {
    name: 'input that does not fit never runs',
    run: async ({ call, calls, backend, failure }) => {
      check(calls.invalid.length > 0, 'the harness should have a call with invalid input');
      for (const invalid of calls.invalid) {
        const error = await failure(call(invalid));
        check(
          error.kind === 'invalid_parameters' && !error.executed && !error.uncertain,
          `${JSON.stringify(invalid.input)} should be invalid_parameters, not executed; it was ${told(error)}`,
        );
        check(error.message.trim() !== '', 'the error should say what does not fit');
      }
      check((await backend.calls()).length === 0, 'no invalid call should reach the backend');
    },
  },
  {
    name: 'invalid input, then a corrected call, then success',
    run: async ({ call, calls, backend, failure }) => {
      const [invalid] = calls.invalid;
      check(invalid !== undefined, 'the harness should have a call with invalid input');
      await failure(call(invalid));
      const { status } = await call(calls.echo('corrected', 0));
      check(status === 'success', `the corrected call should succeed, not ${status}`);
      check((await backend.calls()).length === 1, 'one call should have run');
    },
  },
  {
    name: 'a tool that does not exist: unknown_tool, not executed',
    run: async ({ call, calls, provider, backend, failure }) => {
      const { input } = calls.echo('x', 0);
      const error = await failure(call({ toolName: `${provider.name}.there_is_no_such_tool`, input }));
      check(
        error.kind === 'unknown_tool' && !error.executed,
        `it should be unknown_tool, not executed; it was ${told(error)}`,
      );
      check((await backend.calls()).length === 0, 'no call should reach the backend');
    },
  },
  {
    name: 'a tool that the backend has no more: unknown_tool, not executed',
    about: 'gone',
    run: async ({ call, calls, failure }) => {
      const error = await failure(call(calls.gone?.() ?? calls.fail()));
      check(
        error.kind === 'unknown_tool' && !error.executed,
        `it should be unknown_tool, not executed; it was ${told(error)}`,
      );
    },
  },
  {
    name: 'a tool that fails: execution_error, executed, and certain if it only reads',
    run: async ({ call, calls, provider, failure }) => {
      const failing = calls.fail();
      const error = await failure(call(failing));
      const mayWrite = provider.tools.find(({ name }) => name === failing.toolName)?.policy?.effects === 'mutating';
      const rule = `it should be execution_error, executed${mayWrite ? '' : ', not uncertain'}`;
      const isHonest = error.executed && (mayWrite || !error.uncertain);
      check(error.kind === 'execution_error' && isHonest, `${rule}; it was ${told(error)}`);
    },
  },
  {
    name: 'a tool that hangs: timeout, executed, uncertain, and the backend hears of it',
    run: async ({ call, calls, backend, failure, eventually }) => {
      const error = await failure(call(calls.hang(), { timeoutMs: HANG_TIMEOUT_MS }));
      check(
        error.kind === 'timeout' && error.executed && error.uncertain,
        `it should be timeout, executed, uncertain; it was ${told(error)}`,
      );
      await eventually(
        async () => (await backend.calls()).some(({ state }) => state === 'aborted'),
        'the backend should hear of the timeout',
      );
    },
  },
  {
    name: 'Retry-After is read',
    about: 'retryAfter',
    run: async ({ call, calls, failure }) => {
      const error = await failure(call(calls.busy?.() ?? calls.fail()));
      check(
        error.retryAfterMs === RETRY_AFTER_MS,
        `retryAfterMs should be ${RETRY_AFTER_MS}, not ${error.retryAfterMs}; the error is ${told(error)}`,
      );
    },
  },
  {
    name: 'a backend that dies in mid-call: transport_error, executed, uncertain',
    about: 'kill',
    run: async ({ call, calls, backend, failure, eventually }) => {
      const work = failure(call(calls.hang()));
      await eventually(async () => (await backend.calls()).length === 1, 'the call should reach the backend');
      await backend.kill?.();
      const error = await work;
      check(
        error.kind === 'transport_error' && error.executed && error.uncertain,
        `it should be transport_error, executed, uncertain; it was ${told(error)}`,
      );
    },
  },
  {
    name: 'a dead backend: transport_error',
    about: 'kill',
    run: async ({ call, calls, backend, failure }) => {
      await backend.kill?.();
      // The first call may find out on a connection that was open before; the next has to make one.
      await failure(call(calls.echo('first', 0)));
      const error = await failure(call(calls.echo('second', 0)));
      check(
        error.kind === 'transport_error' && !error.executed,
        `it should be transport_error, not executed; it was ${told(error)}`,
      );
    },
  },
  {
    name: 'close() ends what runs, can be called again, and leaves nothing behind',
    run: async ({ call, calls, backend, provider, layer, failure, eventually }) => {
      const work = failure(call(calls.hang()));
      await eventually(async () => (await backend.calls()).length === 1, 'the call should reach the backend');
      await Promise.all([layer.close(), provider.close()]);
      await provider.close();
      const error = await work;
      check(error.kind === 'canceled', `a call that close() ends should be canceled; it was ${told(error)}`);
      await eventually(async () => ((await backend.held?.()) ?? 0) === 0, 'the backend should be held by nothing');
    },
  },
  {
    name: 'close() of the provider alone ends what runs, and nothing is called afterwards',
    about: 'close',
    run: async ({ call, calls, backend, provider, failure, eventually }) => {
      const hanging = failure(call(calls.hang()));
      await eventually(async () => (await backend.calls()).length === 1, 'the call should reach the backend');
      await provider.close();
      const error = await within(hanging, CLOSED_MS, 'Settling after close()');
      check(
        error.kind === 'canceled' && error.executed,
        `a call that close() ends should be canceled and executed; it was ${told(error)}`,
      );
      await eventually(
        async () => (await backend.calls())[0]?.state === 'aborted',
        'the backend should hear that the call was ended',
      );
      const after = await failure(call(calls.echo('after', 0)));
      check(!after.executed && !after.uncertain, `a call after close() should not be executed; it was ${told(after)}`);
      check((await backend.calls()).length === 1, 'no call should reach the backend after close()');
    },
  },
  {
    name: 'no error tells a secret',
    run: async ({ call, calls, backend, failures, secrets = [], provider }) => {
      const { toolName } = calls.echo('x', 0);
      for (const each of [
        ...calls.invalid,
        calls.fail(),
        calls.busy?.() ?? calls.fail(),
        { toolName, input: { text: { [CANARY]: CANARY }, agent: 7 } },
      ])
        await call(each, { timeoutMs: HANG_TIMEOUT_MS });
      await backend.kill?.();
      await call(calls.echo('after', 0), { timeoutMs: HANG_TIMEOUT_MS });
      check(failures.length >= calls.invalid.length + 3, `the calls of ${provider.name} should have failed`);
      for (const { message, safeMessage = '' } of failures) {
        const said = `${message} ${safeMessage}`;
        const secret = [...secrets, CANARY].find((text) => said.includes(text));
        check(secret === undefined, `an error should not tell ${secret}: ${said}`);
      }
    },
  },
];
