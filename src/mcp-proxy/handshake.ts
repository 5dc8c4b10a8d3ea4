import { firstValueFrom } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { METHODS, VERSION_META_KEY, isRecord, metaOf, type Params } from './message.ts';
import type { Asked, Wire } from './wire.ts';

/** A server that came back and speaks another version cannot take the place of the one that was there. */
const otherVersion = (before: unknown, now: unknown): ToolExecutionError =>
  new ToolExecutionError(
    'transport_error',
    `The MCP server came back with protocol ${String(now)}, not ${String(before)}`,
    {
      executed: false,
    },
  );

const versionOf = (result: unknown): unknown => (isRecord(result) ? result['protocolVersion'] : undefined);

/** Tells an HTTP transport which version its headers are to name. */
const setVersion = (wire: Wire, result: unknown): void => {
  const version = versionOf(result);
  if (typeof version === 'string') wire.transport.setProtocolVersion?.(version);
};

/**
 * What a client has settled with a server, so that a server that was started again can be told the same: its
 * `initialize`, its log level, its subscriptions. Since the protocol of 2026-07-28 there is nothing to settle: each
 * request says it all, and only the way it says so is kept for requests of our own.
 */
export class Handshake {
  #initialize: { readonly params: Params | undefined; readonly result: unknown } | undefined;
  #initialized = false;
  #level: Params | undefined;
  readonly #subscriptions = new Map<unknown, Params | undefined>();
  #envelope: Params | undefined;

  /** Whether the server may be asked something that the client did not ask. */
  get ready(): boolean {
    return this.#initialized || this.#envelope !== undefined;
  }

  /** The `_meta` that a request of our own needs. */
  get envelope(): { readonly _meta?: Params } {
    return this.#envelope === undefined ? {} : { _meta: this.#envelope };
  }

  /** Notes what the client is about to ask. */
  asking({ params }: Asked): void {
    const meta = metaOf(params);
    if (this.#envelope !== undefined || typeof meta[VERSION_META_KEY] !== 'string') return;
    this.#envelope = Object.fromEntries(
      Object.entries(meta).filter(([key]) => key.startsWith('io.modelcontextprotocol/')),
    );
  }

  /** Notes what the client asked, and the server granted. */
  answered({ method, params }: Asked, result: unknown, wire: Wire): void {
    if (method === METHODS.initialize) {
      this.#initialize = { params, result };
      setVersion(wire, result);
    } else if (method === METHODS.setLevel) this.#level = params;
    else if (method === METHODS.subscribe) this.#subscriptions.set(params?.['uri'], params);
    else if (method === METHODS.unsubscribe) this.#subscriptions.delete(params?.['uri']);
  }

  /** Notes what the client said. */
  said(method: string): void {
    if (method === METHODS.initialized) this.#initialized = true;
  }

  /** Tells a new connection what the client had settled with the one before. */
  async replay(wire: Wire): Promise<void> {
    if (this.#initialize === undefined) return;
    const { params, result: before } = this.#initialize;
    const result = await firstValueFrom(wire.request$({ method: METHODS.initialize, params }));
    if (versionOf(result) !== versionOf(before)) throw otherVersion(versionOf(before), versionOf(result));
    setVersion(wire, result);
    if (!this.#initialized) return;
    wire.notify(METHODS.initialized, undefined);
    // What the server does not grant a second time is not worth its tools.
    const again = (method: string, params: Params | undefined): Promise<unknown> =>
      firstValueFrom(wire.request$({ method, params })).catch(() => undefined);
    if (this.#level !== undefined) await again(METHODS.setLevel, this.#level);
    for (const subscription of this.#subscriptions.values()) await again(METHODS.subscribe, subscription);
  }
}
