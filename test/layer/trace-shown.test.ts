import fc from 'fast-check';
import {
  createSpillway,
  plan,
  tool,
  type CaptureOptions,
  type RedactOptions,
  type Spillway,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type TraceEvent,
} from 'spillway';
import { createRedactor } from 'spillway/policy';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import { envelope } from '../call/kit.ts';

const KEY = 'sk-abcdefghij1234567890';
const name = fc.constantFrom('plain', 'id_4', KEY, 'C4nary!');
const redacts: readonly RedactOptions[] = [
  {},
  { secrets: ['C4nary!'] },
  { secrets: ['0000-7000'] },
  { keys: ['session'] },
  { keys: ['node-id'] },
  { also: (text) => text.replaceAll('id_4', 'Ann') },
];
const captures: readonly CaptureOptions[] = [{}, { plain: { input: ['a'], output: ['a'] } }];
const options = fc
  .record({ redact: fc.constantFrom(...redacts), capture: fc.constantFrom(undefined, ...captures) })
  .map(({ redact, capture }) => ({ redact, ...(capture === undefined ? {} : { capture }) }));
const header = fc.record(
  { toolName: name, session: name, tenant: name, toolCallId: name },
  { requiredKeys: ['toolName'] },
);
const request: fc.Arbitrary<ToolCallRequest | ToolCallEnvelope> = fc.oneof(
  header.map((given) => ({ ...given, input: { a: 'x', b: KEY } })),
  fc
    .record({ toolName: name, requestId: name, actorId: name })
    .map(({ toolName, requestId, actorId }) =>
      envelope(toolName, { requestId, target: { sessionKey: 's', actorId, correlationId: actorId } }),
    ),
  // It fits neither form.
  fc.record({ toolName: name, requestId: name, input: fc.constant({}) }),
);

interface Watched {
  readonly layer: Spillway;
  readonly runtime: VirtualRuntime;
  readonly trace: TraceEvent[];
}
const layerOf = (given: { readonly redact: RedactOptions; readonly capture?: CaptureOptions }): Watched => {
  const runtime = virtualRuntime();
  let ran = 0;
  const named = (toolName: string) =>
    tool({
      name: toolName,
      execute: (input: unknown) =>
        ran++ % 3 === 1 ? Promise.reject(new Error(`ECONNRESET of ${KEY}`)) : Promise.resolve(input),
    });
  const layer = createSpillway({ tools: ['plain', 'id_4', KEY, 'C4nary!'].map(named), runtime, ...given });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => {
    if (event.source !== 'layer') trace.push(event);
  });
  return { layer, runtime, trace };
};
const text = (events: readonly unknown[]): string[] => events.map((event) => JSON.stringify(event));

it('R-11.4 the trace shows of each event what the redactor would, however it was made', async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.array(request, { minLength: 1, maxLength: 4 }), async (given, requests) => {
      const redact = createRedactor(given.redact, given.capture);
      const [called, executed] = [layerOf(given), layerOf(given)];
      const own: TraceEvent[] = [];
      for (const one of requests) {
        called.layer.call(one).subscribe((event) => own.push(event));
        await called.runtime.advance(60_000);
        void executed.layer.execute(one);
        await executed.runtime.advance(60_000);
      }
      expect(text(called.trace)).toEqual(text(own.map(redact)));
      expect(text(executed.trace)).toEqual(text(called.trace));
    }),
    { numRuns: 150 },
  );
});

it('R-11.4 nor is more shown of a turn', async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.uniqueArray(name, { minLength: 1 }), name, async (given, ids, toolName) => {
      const redact = createRedactor(given.redact, given.capture);
      const { layer, runtime, trace } = layerOf(given);
      const own: TraceEvent[] = [];
      layer
        .turn(plan.from(ids.map((id) => ({ id, tool: toolName, input: { a: KEY } }))))
        .subscribe((event) => own.push(event));
      await runtime.advance(60_000);
      expect(own.at(-1)?.type).toBe('settled');
      expect(text(trace)).toEqual(text(own.map(redact)));
    }),
    { numRuns: 80 },
  );
});
