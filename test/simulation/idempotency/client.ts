import { tap, type Subscription } from 'rxjs';
import type { ToolCallEnvelope, ToolCallRequest, ToolResultEnvelope } from '../../../src/contract/envelope.ts';
import type { PlanNode } from '../../../src/contract/turn.ts';
import { plan } from '../../../src/turn/plan.ts';
import type { KeyedCall, KeyOperation } from './scenario.ts';
import type { KeyWorld, Worker } from './world.ts';

const requestOf = (world: KeyWorld, { process }: Worker, call: KeyedCall): ToolCallRequest | ToolCallEnvelope => {
  const { n, tool, key, params, tenant, session, mode, deadlineInMs } = call;
  const toolName = `t${tool}`;
  const toolCallId = world.announce(call);
  const input = { n, params };
  // The short form is always enforced, and computes no key.
  if (key !== undefined && mode === 'enforced' && deadlineInMs === undefined && n % 20 === 0) {
    return { toolName, toolCallId, input, idempotencyKey: key, session, ...(tenant === undefined ? {} : { tenant }) };
  }
  return {
    contractVersion: '1.1',
    requestId: `r${n}p${process.index}`,
    toolCallId,
    toolName,
    toolNamespace: 'tools',
    target: { sessionKey: session, actorId: 'a', ...(tenant === undefined ? {} : { tenantId: tenant }) },
    payload: { version: '1.0', params: input, ...(key === undefined ? {} : { idempotencyKey: key }) },
    transport: { dedupeMode: mode, retryBudget: { maxAttempts: 3, maxElapsedMs: 1_000 } },
    control: deadlineInMs === undefined ? {} : { deadlineAtMs: process.runtime.wallNow() + deadlineInMs },
    trace: {},
  };
};

/** One subscriber, and what it is told. */
export class KeyClient {
  readonly worker: Worker;
  readonly what: string;
  ended = 0;
  gone = false;
  result: ToolResultEnvelope | undefined;
  readonly #world: KeyWorld;

  constructor(world: KeyWorld, worker: Worker, what: string) {
    this.#world = world;
    this.worker = worker;
    this.what = what;
  }

  get #findings(): KeyWorld['findings'] {
    return this.#world.findings;
  }

  told(result: ToolResultEnvelope): void {
    this.result = result;
    this.#world.calls.get(result.requestId)?.told(result);
  }

  hears(): void {
    this.#findings.check(!this.gone, 'RSC-1', () => `${this.what} is told something after it unsubscribed`);
  }

  fails(error: unknown): void {
    this.#findings.check(
      false,
      'ERR-1',
      () => `${this.what} failed with ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }

  ends(): void {
    this.ended++;
    this.#findings.check(this.ended === 1, 'RES-1', () => `${this.what} ends ${this.ended} times`);
  }

  /** Once quiet. */
  review(): void {
    this.#findings.check(
      this.gone || this.worker.process.dead || this.ended === 1,
      'RES-2',
      () => `${this.what} has no result`,
    );
  }
}

/** Whoever subscribes goes as its operation says, unless its process is dead or asleep. */
const leave = (
  world: KeyWorld,
  client: KeyClient,
  leaving: Extract<KeyOperation, { kind: 'call' }>['leaving'],
  subscription: Subscription | undefined,
  controller: AbortController,
): void => {
  if (leaving.how === 'stay') return;
  world.runtime.scheduler.after(leaving.afterMs, () =>
    client.worker.process.deliver(() => {
      if (leaving.how === 'abort') controller.abort();
      else if (client.ended === 0) {
        client.gone = true;
        subscription?.unsubscribe();
      }
    }),
  );
};

/** Makes a call, and goes as its operation says. */
export function startKeyed(
  world: KeyWorld,
  worker: Worker,
  { call, promise, leaving }: Extract<KeyOperation, { kind: 'call' }>,
): KeyClient {
  const client = new KeyClient(world, worker, `call ${call.n}`);
  const controller = new AbortController();
  const options = leaving.how === 'abort' ? { signal: controller.signal } : {};
  const request = requestOf(world, worker, call);
  let subscription: Subscription | undefined;
  if (promise) {
    worker.spillway.execute(request, options).then(
      (result) => {
        client.ends();
        client.told(result);
      },
      (error: unknown) => client.fails(error),
    );
  } else {
    subscription = worker.spillway.call(request, options).subscribe({
      next: (event) => {
        client.hears();
        if (event.type === 'settled') client.told(event.result);
      },
      error: (error: unknown) => client.fails(error),
      complete: () => client.ends(),
    });
  }
  leave(world, client, leaving, subscription, controller);
  return client;
}

/** Runs a turn whose calls each have a key. */
export function startKeyedTurn(
  world: KeyWorld,
  worker: Worker,
  { calls, timeoutMs, onDeadline, leaving }: Extract<KeyOperation, { kind: 'turn' }>,
): KeyClient {
  const client = new KeyClient(world, worker, `turn of ${calls.map(({ n }) => n).join(', ')}`);
  const controller = new AbortController();
  const nodes = calls.map((call): PlanNode => {
    const { n, tool, params, key } = call;
    return {
      id: `n${n}`,
      tool: `t${tool}`,
      input: { n, params },
      toolCallId: world.announce(call),
      ...(call.needs === undefined ? {} : { needs: call.needs.map((need) => `n${need}`) }),
      ...(key === undefined ? {} : { idempotencyKey: key }),
    };
  });
  const [first] = calls;
  const options = {
    session: first?.session ?? 's1',
    ...(first?.tenant === undefined ? {} : { tenant: first.tenant }),
    ...(leaving.how === 'abort' ? { signal: controller.signal } : {}),
  };
  const subscription = worker.spillway
    .turn(plan.from(nodes, { timeoutMs, onDeadline }), options)
    .pipe(tap(() => client.hears()))
    .subscribe({
      next: (event) => {
        if (event.source === 'call' && event.type === 'settled') client.told(event.result);
      },
      error: (error: unknown) => client.fails(error),
      complete: () => client.ends(),
    });
  leave(world, client, leaving, subscription, controller);
  return client;
}
