import { setTimeout as sleep } from 'node:timers/promises';
import type { BackendCall, ProviderBackend, ProviderHarness } from 'spillway/testing';
import { z } from 'zod';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import type { Tool, ToolContext } from '../../src/contract/tool.ts';

/** In the provider's options; no error may tell it. */
export const SECRET = 'token-of-the-wire';

interface SeenCall extends BackendCall {
  state: BackendCall['state'];
}

/** What a `Wire` calls: it sees calls, hears their ends, can be killed, and knows who holds a connection to it. */
export class Far implements ProviderBackend {
  readonly seen: SeenCall[] = [];
  connections = 0;
  alive = true;
  readonly #ends = new Set<() => void>();
  readonly calls = (): readonly BackendCall[] => this.seen;
  readonly held = (): number => this.connections;
  readonly close = (): void => undefined;
  readonly kill = (): void => {
    this.alive = false;
    for (const end of this.#ends) end();
  };

  receive(meta: Omit<BackendCall, 'state'>): SeenCall {
    const call: SeenCall = { state: 'running', ...meta };
    this.seen.push(call);
    return call;
  }

  /** Rejects when it is killed. */
  killed(): Promise<never> {
    return new Promise((_, reject) => this.#ends.add(() => reject(new Error('killed'))));
  }
}

/** A provider in this process that does all that is asked of one, in small steps: a mutant overrides one of them. */
export class Wire {
  readonly name = 'wire';
  readonly far: Far;
  closed = false;
  readonly running: Set<AbortController> = new Set<AbortController>();
  /** Tools beside the six. */
  more: readonly Tool[] = [];

  constructor(far: Far) {
    this.far = far;
    far.connections = 1;
  }

  get tools(): readonly Tool[] {
    const tool = (
      name: string,
      input: z.ZodType,
      execute: (input: never, context: ToolContext) => Promise<unknown>,
    ): Tool => ({ name: `wire.${name}`, input, execute });
    const nothing = this.schema(z.strictObject({}));
    return [
      tool(
        'echo',
        this.schema(z.strictObject({ text: z.string(), delayMs: z.number() })),
        (input: { text: string; delayMs: number }, context) => this.call(context, () => this.echo(input)),
      ),
      tool('hang', nothing, (_input, context) => this.call(context, () => new Promise<never>(() => undefined))),
      tool('fail', nothing, (_input, context) => this.call(context, () => this.fail())),
      tool('steps', nothing, (_input, context) => this.call(context, () => this.steps(context))),
      tool('busy', nothing, () => this.busy()),
      tool('gone', nothing, () => this.gone()),
      ...this.more,
    ];
  }

  schema(schema: z.ZodType): z.ZodType {
    return schema;
  }

  async echo({ text, delayMs }: { text: string; delayMs: number }): Promise<unknown> {
    await sleep(delayMs);
    return text;
  }

  async fail(): Promise<unknown> {
    throw await Promise.resolve(new ToolExecutionError('execution_error', 'it broke'));
  }

  async steps(context: ToolContext): Promise<unknown> {
    for (const progress of [1, 2]) {
      context.progress({ progress });
      await sleep(2);
    }
    return 'done';
  }

  async busy(): Promise<unknown> {
    throw await Promise.resolve(
      new ToolExecutionError('execution_error', 'busy', { status: 429, executed: false, retryAfterMs: 7_000 }),
    );
  }

  async gone(): Promise<unknown> {
    throw await Promise.resolve(new ToolExecutionError('unknown_tool', 'it is gone'));
  }

  meta({ callKey, traceparent, baggage = {} }: ToolContext): Omit<BackendCall, 'state'> {
    const pairs = Object.entries(baggage).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    return { callKey, traceparent, baggage: pairs.length === 0 ? undefined : pairs.join(',') };
  }

  /** One call over the wire, with the first of: its answer, the abort, the end of the backend. */
  async call(context: ToolContext, work: () => Promise<unknown>): Promise<unknown> {
    if (this.closed) throw this.afterClose();
    if (!this.far.alive) throw this.unreachable();
    const seen = this.far.receive(this.meta(context));
    const closing = new AbortController();
    this.running.add(closing);
    const aborted = this.aborted(AbortSignal.any([context.signal, closing.signal]), () => this.tellAbort(seen));
    const lost = this.far.killed().catch(() => Promise.reject(this.lost()));
    try {
      const output = await Promise.race([work(), aborted, lost]);
      seen.state = 'answered';
      return output;
    } finally {
      this.running.delete(closing);
    }
  }

  aborted(signal: AbortSignal, tell: () => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        tell();
        try {
          resolve(this.answerAbort());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  tellAbort(seen: SeenCall): void {
    seen.state = 'aborted';
  }

  answerAbort(): unknown {
    throw new ToolExecutionError('canceled', 'aborted', { executed: true, uncertain: true });
  }

  lost(): ToolExecutionError {
    return new ToolExecutionError('transport_error', 'the connection was lost', { uncertain: true });
  }

  unreachable(): ToolExecutionError {
    return new ToolExecutionError('transport_error', 'nobody is there', { executed: false });
  }

  afterClose(): ToolExecutionError {
    return new ToolExecutionError('transport_error', 'it was closed', { executed: false });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const each of this.running) each.abort();
    this.far.connections = 0;
    await Promise.resolve();
  }
}

/** What is wrong with a mutant, given the sound wire that it is made of. */
export type Change = (wire: Wire) => Partial<Omit<Wire, 'tools'>>;

/** A harness for a `Wire`, or for a mutant of it. */
export function harnessOf(change: Change = () => ({})): ProviderHarness {
  const far = new Far();
  const wire = new Wire(far);
  Object.assign(wire, change(wire));
  const call = (name: string, input = {}): { toolName: string; input: Record<string, unknown> } => ({
    toolName: `wire.${name}`,
    input,
  });
  return {
    provider: wire,
    backend: far,
    calls: {
      echo: (text, delayMs) => call('echo', { text, delayMs }),
      hang: () => call('hang'),
      fail: () => call('fail'),
      steps: () => call('steps'),
      busy: () => call('busy'),
      gone: () => call('gone'),
      invalid: [call('echo', { text: 1, delayMs: 0 }), call('echo', {}), call('fail', { more: 1 })],
    },
    secrets: [SECRET],
  };
}
