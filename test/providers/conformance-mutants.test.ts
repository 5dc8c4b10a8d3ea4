import { setTimeout as sleep } from 'node:timers/promises';
import { providerConformance } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ToolErrorKind } from '../../src/contract/error-kind.ts';
import { ToolExecutionError, type ToolExecutionErrorOptions } from '../../src/contract/tool-error.ts';
import { createSpillway } from '../../src/spillway.ts';
import { SECRET, Wire, harnessOf, type Change } from './conformance-wire.ts';

/** What each case says of a provider; nothing where it passes. */
const findings = async (change: Change, wanted: RegExp): Promise<string[]> => {
  const cases = providerConformance({ createSpillway, patienceMs: 1_200, make: () => harnessOf(change) }).filter(
    ({ name }) => wanted.test(name),
  );
  const said = await Promise.all(
    cases.map(({ name, run }) =>
      run().then(
        () => undefined,
        (error: unknown) => `${name}: ${String(error)}`,
      ),
    ),
  );
  return said.filter((each) => each !== undefined);
};

const error = (kind: ToolErrorKind, options: ToolExecutionErrorOptions = {}, message = 'x'): ToolExecutionError =>
  new ToolExecutionError(kind, message, options);
const fails = (thrown: Error) => (): Promise<never> => Promise.reject(thrown);
const throws = (thrown: Error) => (): never => {
  throw thrown;
};
const gives = (value: unknown) => (): Promise<unknown> => Promise.resolve(value);
const unchecked = (): z.ZodType => z.unknown();
/** What the sound wire does. */
const { echo, call, meta, close, answerAbort } = Wire.prototype;

/** Providers with one thing wrong: what, by which case it is found, and what that says. */
const MUTANTS: ReadonlyArray<readonly [what: string, change: Change, found: RegExp, reason: RegExp]> = [
  ['no answer', () => ({ echo: gives(undefined) }), /^a call is answered/, /echo should answer hello/],
  [
    'an error for an answer',
    () => ({ echo: fails(new Error('no')) }),
    /^a call is answered/,
    /got (?:retriable_)?error/,
  ],
  [
    'answers mixed up',
    () => {
      let held = '';
      return {
        echo: async ({ text, delayMs }) => {
          held = text;
          await sleep(delayMs);
          return held;
        },
      };
    },
    /^calls at the same time/,
    /the call of text-\d+-end got/,
  ],

  [
    'an abort that the backend does not hear of',
    () => ({ tellAbort: () => undefined }),
    /^an aborted call settles/,
    /the backend should see the abort/,
  ],
  [
    'an abort that ends its siblings',
    (wire) => ({
      answerAbort: () => {
        wire.running.forEach((each) => each.abort());
        return Reflect.apply(answerAbort, wire, []);
      },
    }),
    /^an aborted call settles/,
    /the sibling of an aborted call should succeed/,
  ],
  [
    'an abort answered with timeout',
    () => ({ answerAbort: throws(error('timeout')) }),
    /^a tool whose signal is aborted/,
    /should fail with canceled; it was timeout/,
  ],
  [
    'an abort answered with a lost connection',
    (wire) => ({ answerAbort: throws(wire.lost()) }),
    /^a tool whose signal is aborted/,
    /should fail with canceled; it was transport_error/,
  ],
  [
    'an abort taken for an answer',
    () => ({ answerAbort: () => 'stopped' }),
    /^a tool whose signal is aborted/,
    /should not be answered; it gave "stopped"/,
  ],
  [
    'an abort that says that nothing ran',
    () => ({ answerAbort: throws(error('canceled')) }),
    /^a tool whose signal is aborted/,
    /should be executed; it was canceled, not executed/,
  ],

  [
    'progress that is lost',
    () => ({ steps: gives('done') }),
    /^progress arrives/,
    /progress should arrive before the answer/,
  ],
  [
    'a key that is lost',
    (wire) => ({ meta: (context) => ({ ...Reflect.apply(meta, wire, [context]), callKey: undefined }) }),
    /^the key and the trace/,
    /should carry its key/,
  ],
  [
    'a key of each call’s own',
    (wire) => {
      let number = 0;
      return { meta: (context) => ({ ...Reflect.apply(meta, wire, [context]), callKey: `own-${number++}` }) };
    },
    /^the key and the trace/,
    /two calls with one key should carry the same/,
  ],
  [
    'one key for all',
    (wire) => ({ meta: (context) => ({ ...Reflect.apply(meta, wire, [context]), callKey: 'always' }) }),
    /^the key and the trace/,
    /should carry one that no other has/,
  ],
  [
    'a trace context that is lost',
    (wire) => ({ meta: (context) => ({ ...Reflect.apply(meta, wire, [context]), traceparent: undefined }) }),
    /^the key and the trace/,
    /traceparent should be/,
  ],
  [
    'a trace context that stays',
    (wire) => {
      let stays: string | undefined;
      return {
        meta: (context) => ({
          ...Reflect.apply(meta, wire, [context]),
          traceparent: (stays = context.traceparent ?? stays),
        }),
      };
    },
    /^the key and the trace/,
    /without trace context should carry none/,
  ],
  [
    'baggage as it is',
    (wire) => ({ meta: (context) => ({ ...Reflect.apply(meta, wire, [context]), baggage: 'tenant=a b' }) }),
    /^the key and the trace/,
    /baggage should be tenant=a%20b/,
  ],

  [
    'input that is not checked',
    () => ({ schema: unchecked }),
    /^input that does not fit/,
    /should have failed|should be invalid_parameters/,
  ],
  [
    'input that is checked after it was sent',
    (wire) => ({
      schema: unchecked,
      call: (context) => {
        wire.far.receive(wire.meta(context));
        return Promise.reject(error('invalid_parameters'));
      },
    }),
    /^input that does not fit/,
    /no invalid call should reach the backend/,
  ],
  [
    'invalid input that may have run',
    () => ({ schema: unchecked, call: fails(error('invalid_parameters', { uncertain: true })) }),
    /^input that does not fit/,
    /it was invalid_parameters, not executed, uncertain/,
  ],
  [
    'invalid input without a word',
    () => ({ schema: unchecked, call: fails(error('invalid_parameters', {}, ' ')) }),
    /^input that does not fit/,
    /the error should say what does not fit/,
  ],
  [
    'invalid input that breaks what follows',
    (wire) => {
      let broken = false;
      const breaking = (schema: z.ZodType): z.ZodType =>
        z.unknown().superRefine((value, context) => {
          if (schema.safeParse(value).success) return;
          broken = true;
          context.addIssue('it does not fit');
        });
      return {
        schema: breaking,
        echo: (input) => (broken ? Promise.reject(new Error('broken')) : Reflect.apply(echo, wire, [input])),
      };
    },
    /^invalid input, then a corrected call/,
    /the corrected call should succeed/,
  ],

  [
    'a tool for every name',
    () => ({ more: [{ name: 'wire.there_is_no_such_tool', execute: () => 'here' }] }),
    /^a tool that does not exist/,
    /there_is_no_such_tool should have failed/,
  ],
  [
    'a tool that is gone and said to have failed',
    (wire) => ({ gone: wire.fail }),
    /^a tool that the backend has no more/,
    /unknown_tool, not executed; it was execution_error/,
  ],
  [
    'a tool that is gone and said to have run',
    () => ({ gone: fails(error('unknown_tool', { executed: true })) }),
    /^a tool that the backend has no more/,
    /it was unknown_tool, executed/,
  ],
  ['a failure taken for an answer', () => ({ fail: gives('it broke') }), /^a tool that fails/, /should have failed/],
  [
    'a failure of the wrong kind',
    (wire) => ({ fail: fails(wire.lost()) }),
    /^a tool that fails/,
    /it was transport_error/,
  ],
  [
    'a failure that may have been none',
    () => ({ fail: fails(error('execution_error', { uncertain: true })) }),
    /^a tool that fails/,
    /it was execution_error, executed, uncertain/,
  ],
  [
    'a timeout that the backend does not hear of',
    () => ({ tellAbort: () => undefined }),
    /^a tool that hangs/,
    /the backend should hear of the timeout/,
  ],
  [
    'a hanging tool that is given up early',
    (wire) => ({
      call: (...given) => Promise.race([Reflect.apply(call, wire, given), sleep(50).then(fails(wire.lost()))]),
    }),
    /^a tool that hangs/,
    /should be timeout, executed, uncertain; it was transport_error/,
  ],
  [
    'a Retry-After that is lost',
    () => ({ busy: fails(new Error('busy')) }),
    /^Retry-After/,
    /retryAfterMs should be 7000, not undefined/,
  ],
  [
    'a Retry-After in seconds',
    () => ({ busy: fails(error('execution_error', { retryAfterMs: 7 })) }),
    /^Retry-After/,
    /retryAfterMs should be 7000, not 7;/,
  ],

  [
    'a lost connection that ran nothing',
    (wire) => ({ lost: wire.unreachable }),
    /^a backend that dies/,
    /executed, uncertain; it was transport_error, not executed/,
  ],
  [
    'a lost connection that nobody notices',
    () => ({ lost: () => error('timeout') }),
    /^a backend that dies/,
    /it was timeout/,
  ],
  [
    'a dead backend that ran something',
    () => ({ unreachable: () => error('transport_error') }),
    /^a dead backend/,
    /not executed; it was transport_error, executed/,
  ],
  [
    'a dead backend that has no kind',
    () => ({ unreachable: () => error('execution_error', { executed: false }) }),
    /^a dead backend/,
    /should be transport_error/,
  ],

  [
    'a close() that leaves its connection',
    (wire) => ({
      close: async () => {
        await Reflect.apply(close, wire, []);
        wire.far.connections = 1;
      },
    }),
    /^close\(\) ends what runs/,
    /the backend should be held by nothing/,
  ],
  [
    'a close() that can be called once',
    (wire) => ({
      close: () => (wire.closed ? Promise.reject(new Error('closed already')) : Reflect.apply(close, wire, [])),
    }),
    /^close\(\) ends what runs/,
    /closed already/,
  ],
  [
    'a close() that ends nothing',
    () => ({ close: () => Promise.resolve() }),
    /^close\(\) of the provider alone/,
    /should be canceled and executed; it was timeout/,
  ],
  [
    'a close() that lets go of its connection and not of its calls',
    (wire) => ({
      close: () => {
        Object.assign(wire, { closed: true });
        wire.far.connections = 0;
        return Promise.resolve();
      },
    }),
    /^close\(\) of the provider alone/,
    /should be canceled and executed; it was timeout/,
  ],
  [
    'a close() that answers what runs',
    () => ({ answerAbort: () => 'closed' }),
    /^close\(\) of the provider alone/,
    /hang should have failed/,
  ],
  [
    'a close() that the backend does not hear of',
    () => ({ tellAbort: () => undefined }),
    /^close\(\) of the provider alone/,
    /hear that the call was ended/,
  ],
  [
    'calls after close()',
    (wire) => ({ close: () => Reflect.apply(close, wire, []).then(() => void (wire.closed = false)) }),
    /^close\(\) of the provider alone/,
    /echo should have failed/,
  ],
  [
    'calls after close() that may have run',
    (wire) => ({ afterClose: wire.lost }),
    /^close\(\) of the provider alone/,
    /should not be executed; it was transport_error, executed/,
  ],

  [
    'a token in an error',
    () => ({ fail: fails(new Error(`401 for ${SECRET}`)) }),
    /^no error tells a secret/,
    /should not tell token-of-the-wire/,
  ],
  [
    'a token in a text for the model',
    () => ({ unreachable: () => error('transport_error', { executed: false, safeMessage: `no answer to ${SECRET}` }) }),
    /^no error tells a secret/,
    /should not tell token-of-the-wire/,
  ],
  [
    'an input in an error',
    () => ({ schema: unchecked, echo: (input) => Promise.reject(new Error(JSON.stringify(input))) }),
    /^no error tells a secret/,
    /should not tell canary-in-the-input/,
  ],
];

describe('R-12.2 providerConformance', () => {
  it('passes a provider that does all that is asked', async () => {
    expect(await findings(() => ({}), /./)).toEqual([]);
  });

  it.concurrent.each(MUTANTS)('finds %s', async (_what, change, found, reason) => {
    expect(await findings(change, found)).toEqual([expect.stringMatching(reason)]);
  });

  it('has a mutant for each of its cases, but for the one that no provider hears of', () => {
    const names = providerConformance({ createSpillway, make: () => harnessOf() }).map(({ name }) => name);
    expect(names.filter((name) => !MUTANTS.some(([, , found]) => found.test(name)))).toEqual([
      'a call aborted before it begins does not reach the backend',
    ]);
  });
});
