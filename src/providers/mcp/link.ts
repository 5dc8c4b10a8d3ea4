import { Subject, firstValueFrom, map, mergeMap, race, throwError, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { mcpNotConnected } from '../../errors/mcp.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { timeoutError } from '../../operators/attempt-timeout.ts';
import type { McpConnection, McpToolLike } from './client.ts';
import { Listings, type Listed } from './listings.ts';

/**
 * The wait before each restart of a server that keeps failing; the first restart is at once. Source: netdata's
 * ai-agent.
 */
const RESTART_DELAYS_MS: readonly number[] = [0, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];
/** How long `close()` waits for a connection that does not end. */
const CLOSE_WAIT_MAX_MS = 10_000;
/**
 * The pause after a listing, before another change is looked at: a server can say that its tools have changed whenever
 * it is asked for them.
 */
const LISTING_PAUSE_MS = 100;

/** A connection in use. */
export interface LiveConnection<Connection extends McpConnection = McpConnection> {
  readonly connection: Connection;
  /** Errors once the connection is lost or closed; emits nothing. */
  readonly lost$: Observable<never>;
}

/** One connection at a time to one server, made again when it is needed after it was lost. */
export interface McpLink<Connection extends McpConnection = McpConnection> {
  /**
   * The live connection. Connects when there is none; callers that come meanwhile share that one attempt. After
   * failures it refuses until their backoff is over, with `retryAfterMs`: nothing waits on a timer, nothing restarts
   * that nobody calls.
   */
  acquire(): Promise<LiveConnection<Connection>>;
  /** A call found that its connection is of no more use: the others on it fail, and the next one connects again. */
  lose(live: LiveConnection<Connection>, reason: unknown): void;
  /**
   * Lists the tools of a connection once more, and tells them as those of a new one are told. Rejects when they cannot
   * be listed.
   */
  relist(live: LiveConnection<Connection>): Promise<void>;
  /** Lists them once more where the server said since that they changed. Rejects when they cannot be listed. */
  renew(live: LiveConnection<Connection>): Promise<void>;
  /** A call came back: the server works, and its failures are forgotten. */
  answered(): void;
  /** Ends the connection, and the attempt to make one. Idempotent; nothing connects afterwards. */
  close(): Promise<void>;
}

interface LinkOptions<Connection extends McpConnection> {
  readonly name: string;
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  readonly connectTimeoutMs: number;
  readonly runtime: Runtime;
  /** Told the tools of each connection, before anyone has it, and whenever they have been listed again. */
  readonly listed: (tools: readonly McpToolLike[]) => void;
}

/** What was opened, and not in use yet. */
interface Opened<Connection extends McpConnection> {
  readonly connection: Connection;
  readonly answer: Listed;
  /** Told once it is in use: from then on what the server says of its tools is followed. */
  readonly follow: (live: LiveConnection<Connection>) => void;
}

type LinkState<Connection extends McpConnection> =
  | { readonly type: 'idle' }
  | { readonly type: 'connecting'; readonly attempt: Promise<LiveConnection<Connection>> }
  | { readonly type: 'up'; readonly live: LiveConnection<Connection>; readonly end$: Subject<never> }
  | { readonly type: 'down'; readonly untilMs: number; readonly cause: unknown }
  | { readonly type: 'closed' };

const failed = (error: ToolExecutionError): Observable<never> => throwError(() => error);

const downText = (name: string, failures: number, retryAfterMs: number): string =>
  `The MCP server ${name} is down after ${failures} failures in a row; it may be connected again in ${retryAfterMs} ms`;

export function createMcpLink<Connection extends McpConnection>(of: LinkOptions<Connection>): McpLink<Connection> {
  const { name, connect, connectTimeoutMs, runtime, listed } = of;
  const background = runtime.background ?? runtime;
  const listings = new Listings(listed);
  const closing$ = new Subject<ToolExecutionError>();
  let state: LinkState<Connection> = { type: 'idle' };
  let failures = 0;
  /** The attempt's own work, which may go on after the attempt was given up. */
  let opening: Promise<unknown> = Promise.resolve();
  let closed: Promise<void> | undefined;

  const closedError = (): ToolExecutionError =>
    new ToolExecutionError('transport_error', `The MCP server ${name} was closed; it is not called any more`, {
      executed: false,
      classification: 'permanent',
    });

  const isClosed = (): boolean => state.type === 'closed';

  const down = (cause: unknown): void => {
    const delayMs = RESTART_DELAYS_MS[Math.min(failures, RESTART_DELAYS_MS.length - 1)] ?? 0;
    failures++;
    state = { type: 'down', untilMs: runtime.now() + delayMs, cause };
  };

  const open = async (signal: AbortSignal): Promise<Opened<Connection>> => {
    const connection = await connect(signal);
    try {
      signal.throwIfAborted();
      const follow = following(connection);
      const answer = await listings.ask(connection.client);
      signal.throwIfAborted();
      return { connection, answer, follow };
    } catch (error) {
      await connection.close().catch(() => undefined);
      throw error;
    }
  };

  const lose = (live: LiveConnection<Connection>, reason: unknown): void => {
    if (state.type !== 'up' || state.live !== live) return;
    const { end$ } = state;
    down(reason);
    const why = reason instanceof Error ? `: ${reason.message}` : '';
    const details = reason instanceof ToolExecutionError ? reason.details : undefined;
    end$.error(
      new ToolExecutionError('transport_error', `The connection to the MCP server ${name} was lost${why}`, {
        uncertain: true,
        cause: reason,
        details,
      }),
    );
    live.connection.close().catch(() => undefined);
  };

  const isUp = (live: LiveConnection<Connection>): boolean => state.type === 'up' && state.live === live;

  const relist = async (live: LiveConnection<Connection>): Promise<void> => {
    const answer = await listings.ask(live.connection.client);
    if (isUp(live)) listings.take(answer);
  };

  /**
   * Hears what a server says of its tools, from before they are first listed: what it says meanwhile is looked at once
   * the connection is up.
   */
  const following = (connection: Connection): Opened<Connection>['follow'] => {
    let followed: LiveConnection<Connection> | undefined;
    let changed = false;
    let listing = false;
    /** One listing at a time: the next one covers all changes during it and during the pause after it. */
    const listAgain = async (live: LiveConnection<Connection>): Promise<void> => {
      listing = true;
      while (changed && isUp(live)) {
        changed = false;
        // A listing that fails leaves the list as it was; if the connection is lost, the next one brings a new list.
        await relist(live).catch(() => undefined);
        await firstValueFrom(race(background.after(LISTING_PAUSE_MS), live.lost$)).catch(() => undefined);
      }
      listing = false;
    };
    connection.toolsChanged?.(() => {
      listings.changed();
      changed = true;
      if (followed !== undefined && !listing) void listAgain(followed);
    });
    return (live) => {
      followed = live;
      void listAgain(live);
    };
  };

  const up = ({ connection, answer, follow }: Opened<Connection>): LiveConnection<Connection> => {
    const end$ = new Subject<never>();
    const live: LiveConnection<Connection> = { connection, lost$: end$ };
    state = { type: 'up', live, end$ };
    listings.take(answer);
    follow(live);
    connection.closed.then(
      (reason) => lose(live, reason),
      (reason: unknown) => lose(live, reason),
    );
    return live;
  };

  const dial = async (): Promise<LiveConnection<Connection>> => {
    const opened$ = abortable((signal) => {
      const work = open(signal);
      // Given up between its last look at the signal and now: nobody else would close it.
      opening = work.then(({ connection }) => (signal.aborted ? connection.close() : undefined)).catch(() => undefined);
      return work;
    });
    const late$ = background
      .after(connectTimeoutMs)
      .pipe(mergeMap(() => failed(timeoutError(connectTimeoutMs, 'No answer to initialize'))));
    try {
      // Up as soon as it is open, not a microtask later: a `close()` between the two would miss it.
      return await firstValueFrom(race(opened$.pipe(map(up)), late$, closing$.pipe(mergeMap(failed))));
    } catch (error) {
      if (isClosed()) throw closedError();
      const cause = mcpNotConnected(error, name);
      down(cause);
      throw cause;
    }
  };

  const start = (): Promise<LiveConnection<Connection>> => {
    const attempt = dial();
    // Those who wait for it get its failure; without them, the failure is no unhandled rejection.
    attempt.catch(() => undefined);
    state = { type: 'connecting', attempt };
    return attempt;
  };

  const acquire = async (): Promise<LiveConnection<Connection>> => {
    if (state.type === 'up') return state.live;
    if (state.type === 'connecting') return state.attempt;
    if (state.type === 'closed') throw closedError();
    const leftMs = state.type === 'down' ? state.untilMs - runtime.now() : 0;
    // Timers come up to a millisecond early: a caller that waited `retryAfterMs` must not be refused again.
    if (state.type === 'idle' || leftMs < 1) return start();
    const retryAfterMs = Math.ceil(leftMs);
    const facts = { executed: false, retryAfterMs, cause: state.cause };
    throw new ToolExecutionError('transport_error', downText(name, failures, retryAfterMs), facts);
  };

  /** Waits for work to settle, in any way, but not for ever. */
  const settle = async (work: Promise<unknown>): Promise<void> => {
    const settled$ = abortable(() =>
      work.then(
        () => 0 as const,
        () => 0 as const,
      ),
    );
    await firstValueFrom(race(settled$, background.after(CLOSE_WAIT_MAX_MS)));
  };

  const end = async (): Promise<void> => {
    const before = state;
    state = { type: 'closed' };
    closing$.next(closedError());
    if (before.type !== 'up') return settle(opening);
    before.end$.error(
      new ToolExecutionError('canceled', `The MCP server ${name} was closed during the call`, {
        executed: true,
        uncertain: true,
      }),
    );
    await settle(before.live.connection.close());
  };

  return {
    acquire,
    lose,
    relist,
    renew: (live) => listings.renewed(() => relist(live)),
    answered: () => {
      failures = 0;
    },
    close: () => (closed ??= end()),
  };
}
