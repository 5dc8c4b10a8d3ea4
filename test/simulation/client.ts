import { getEventListeners } from 'node:events';
import { take, tap, type Subscription } from 'rxjs';
import type { ToolCallEnvelope, ToolCallRequest, ToolResultEnvelope } from '../../src/contract/envelope.ts';
import type { ToolEvent } from '../../src/contract/event.ts';
import type { PlanNode } from '../../src/contract/turn.ts';
import { plan } from '../../src/turn/plan.ts';
import type { CallPlace } from './call-place.ts';
import type { CallWatch } from './call-watch.ts';
import type { CallOperation, TurnOperation } from './scenario.ts';
import { TurnWatch } from './turn-watch.ts';
import type { World } from './world.ts';

const requestOf = ({ n, tool, tenant, envelope }: CallOperation, world: World): ToolCallRequest | ToolCallEnvelope => {
  const toolName = `t${tool}`;
  if (envelope === undefined) return { toolName, input: world.inputOf(n), ...(tenant === undefined ? {} : { tenant }) };
  const { deadlineInMs, maxAttempts, maxElapsedMs, timeoutMs, retrySafe, safetyCritical, breakerHint } = envelope;
  return {
    contractVersion: '1.1',
    requestId: `r${n}`,
    toolName,
    toolNamespace: 'simulation',
    target: { sessionKey: 's', actorId: 'a', ...(tenant === undefined ? {} : { tenantId: tenant }) },
    payload: {
      version: '1.0',
      params: world.inputOf(n),
      callHints: {
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(retrySafe === undefined ? {} : { expectedRetrySafe: retrySafe }),
        ...(safetyCritical === undefined ? {} : { safetyCritical }),
      },
    },
    transport: {
      dedupeMode: 'disabled',
      retryBudget: { maxAttempts, maxElapsedMs },
      ...(breakerHint === undefined ? {} : { circuitBreakerHint: breakerHint }),
    },
    control: deadlineInMs === undefined ? {} : { deadlineAtMs: world.runtime.wallNow() + deadlineInMs },
    trace: {},
  };
};

/** One subscriber and its end: what it is told, once, and nothing after it has gone. */
export class Client {
  readonly world: World;
  readonly what: string;
  readonly controller: AbortController | undefined;
  ended = 0;
  gone = false;

  constructor(world: World, what: string, withSignal: boolean) {
    this.world = world;
    this.what = what;
    this.controller = withSignal ? new AbortController() : undefined;
  }

  fails(error: unknown): void {
    this.world.findings.check(
      false,
      'ERR-1',
      () => `${this.what} failed with ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }

  told(): void {
    this.world.findings.check(!this.gone, 'RSC-1', () => `${this.what} is told something after it unsubscribed`);
  }

  ends(): void {
    this.ended++;
    this.world.findings.check(this.ended === 1, 'RES-1', () => `${this.what} ends ${this.ended} times`);
  }

  /** Its caller's signal: nobody listens to it any more once the call has ended. */
  aborts(): void {
    const { controller, ended, world } = this;
    if (controller === undefined) return;
    if (ended > 0)
      world.findings.check(
        getEventListeners(controller.signal, 'abort').length === 0,
        'RSC-1',
        () => `${this.what} left a listener on its caller’s signal`,
      );
    controller.abort();
  }

  /** Once quiet. */
  review(): void {
    this.world.findings.check(this.gone || this.ended === 1, 'RES-2', () => `${this.what} has no result`);
  }
}

const checkOutput = (world: World, { output, status }: ToolResultEnvelope, call: CallWatch | undefined): void => {
  if (status !== 'success' || call?.succeeded === undefined) return;
  const { n, tool, attempt } = call.succeeded;
  const content = output?.content as
    | { readonly n?: number; readonly tool?: string; readonly attempt?: number }
    | undefined;
  world.findings.check(
    content?.n === n && content.tool === tool && content.attempt === attempt,
    'RES-3',
    () => `call ${n} gives ${JSON.stringify(content)}, its attempt gave ${JSON.stringify(call.succeeded)}`,
  );
};

/** Subscribes to a call, and goes as its operation says. */
export function startCall(world: World, operation: CallOperation): Client {
  const { n, ending, envelope, tenant = '' } = operation;
  const { findings, spillway, runtime } = world;
  const client = new Client(world, `call ${n}`, ending.how === 'abort');
  const tool = world.scenario.tools[operation.tool];
  if (tool === undefined) return client;
  const request = requestOf(operation, world);
  const now = world.now();
  const place: CallPlace = {
    n,
    startedMs: now,
    ownDeadlineMs: envelope?.deadlineInMs === undefined ? Infinity : now + envelope.deadlineInMs,
    turnDeadlineMs: Infinity,
    tenant,
    ...(envelope === undefined ? {} : { envelope }),
  };
  const options = client.controller === undefined ? {} : { signal: client.controller.signal };
  const call = (): CallWatch | undefined => (last === undefined ? undefined : world.calls.get(last.callId));
  let events = 0;
  let last: ToolEvent | undefined;
  const leaves = (): void => {
    client.gone = true;
    if (last !== undefined) world.leaves(last.callId, ending.how === 'in_next' ? last.seq : world.seq);
  };
  let subscription: Subscription | undefined;
  world.beginning = { place, tool };
  try {
    if (operation.promise) {
      spillway.execute(request, options).then(
        (result) => {
          client.ends();
          checkOutput(world, result, world.calls.get(result.requestId));
        },
        (error: unknown) => client.fails(error),
      );
    } else {
      let events$ = spillway.call(request, options).pipe(
        tap((event) => {
          client.told();
          last = event;
          events++;
          if (ending.how !== 'in_next' || events !== ending.event || event.type === 'settled') return;
          findings.saw('unsubscribed inside next');
          leaves();
        }),
      );
      if (ending.how === 'in_next') events$ = events$.pipe(take(ending.event));
      subscription = events$.subscribe({
        error: (error: unknown) => client.fails(error),
        complete: () => {
          if (client.gone) return;
          client.ends();
          findings.check(last?.type === 'settled', 'RES-1', () => `call ${n} ends with ${last?.type}`);
          if (last?.type === 'settled') checkOutput(world, last.result, call());
        },
      });
    }
  } catch (error) {
    client.fails(error);
  }
  world.beginning = undefined;
  const settled = (): boolean =>
    operation.promise
      ? [...world.calls.values()].some((watch) => watch.place.n === n && watch.settled)
      : call()?.settled === true;
  if (ending.how === 'unsubscribe') {
    runtime.scheduler.after(ending.afterMs, () => {
      if (client.ended > 0) return;
      leaves();
      subscription?.unsubscribe();
      world.checkGivenUp();
    });
  }
  if (ending.how === 'abort') {
    runtime.scheduler.after(ending.afterMs, () => {
      client.aborts();
      findings.check(world.closed || settled(), 'RSC-1', () => `call ${n} goes on after its signal was aborted`);
    });
  }
  return client;
}

/** Subscribes to a turn, and goes as its operation says. */
export function startTurn(world: World, operation: TurnOperation): Client {
  const { n, ending, nodes, timeoutMs, onDeadline, concurrency } = operation;
  const { findings, spillway, runtime } = world;
  const client = new Client(world, `turn ${n}`, ending.how === 'abort');
  const turn = new TurnWatch(operation, findings, () => world.now());
  const planned = nodes.map((node): PlanNode => ({
    id: node.id,
    tool: `t${node.tool}`,
    input: node.computesInput ? () => world.inputOf(node.n) : world.inputOf(node.n),
    needs: node.needs,
    optional: node.optional,
    ...(node.hasDefault && node.needs.length > 0 ? { default: 'a default' } : {}),
  }));
  let events = 0;
  let result = false;
  let subscription: Subscription | undefined;
  const leaves = (seq: number): void => {
    client.gone = true;
    if (turn.result === undefined) turn.abandoned(seq);
  };
  world.beginning = turn;
  try {
    let events$ = spillway
      .turn(
        plan.from(planned, { timeoutMs, onDeadline, ...(concurrency === Infinity ? {} : { concurrency }) }),
        client.controller === undefined ? {} : { signal: client.controller.signal },
      )
      .pipe(
        tap((event) => {
          client.told();
          events++;
          const last = event.source === 'turn' && event.type === 'settled';
          result ||= last;
          if (last) turn.told(event.result);
          if (ending.how !== 'in_next' || events !== ending.event || last) return;
          findings.saw('unsubscribed inside next');
          leaves(event.seq);
        }),
      );
    if (ending.how === 'in_next') events$ = events$.pipe(take(ending.event));
    subscription = events$.subscribe({
      error: (error: unknown) => client.fails(error),
      complete: () => {
        if (client.gone) return;
        client.ends();
        findings.check(result, 'RES-1', () => `turn ${n} ends without a result`);
      },
    });
  } catch (error) {
    client.fails(error);
  }
  world.beginning = undefined;
  if (ending.how === 'unsubscribe') {
    runtime.scheduler.after(ending.afterMs, () => {
      if (client.ended > 0) return;
      leaves(world.seq);
      subscription?.unsubscribe();
      world.checkGivenUp();
    });
  }
  if (ending.how === 'abort') {
    runtime.scheduler.after(ending.afterMs, () => {
      client.aborts();
      findings.check(world.closed || turn.over, 'RSC-1', () => `turn ${n} goes on after its signal was aborted`);
    });
  }
  return client;
}
