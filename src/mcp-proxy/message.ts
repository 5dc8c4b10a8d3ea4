import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
  JSONRPCResultResponse,
  RequestId,
} from '@modelcontextprotocol/sdk/types.js';

export type Message = JSONRPCMessage;
export type Request = JSONRPCRequest;
export type Notification = JSONRPCNotification;
export type Response = JSONRPCResultResponse | JSONRPCErrorResponse;
export type Id = RequestId;

/** What a request or a notification carries, as it came: fields that nobody here knows included. */
export type Params = Readonly<Record<string, unknown>>;

export const isRequest = (message: Message): message is Request => 'method' in message && 'id' in message;
export const isNotification = (message: Message): message is Notification => 'method' in message && !('id' in message);
export const isResponse = (message: Message): message is Response => !('method' in message);

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The `_meta` of what was sent; an empty one where there is none. */
export const metaOf = (params: unknown): Readonly<Record<string, unknown>> => {
  const meta = isRecord(params) ? params['_meta'] : undefined;
  return isRecord(meta) ? meta : {};
};

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** What both sides may nest. Some thousands deep nothing can be written as JSON again. */
export const DEPTH_MAX = 512;

/** Whether lists and objects are nested deeper than may be passed on. Level by level: the stack has its own limit. */
export const isNestedDeep = (message: Message): boolean => {
  let level: readonly object[] = [message];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return true;
    level = level.flatMap((one) => Object.values(one as Params).filter(isObject));
  }
  return false;
};

/** Asks the other side, as JSON-RPC writes it. The types of the SDK know their own methods; here any passes. */
export const requestOf = (id: Id, method: string, params: Params | undefined): Request => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params === undefined ? {} : { params }),
});

export const notificationOf = (method: string, params: Params | undefined): Notification => ({
  jsonrpc: '2.0',
  method,
  ...(params === undefined ? {} : { params }),
});

export const resultOf = (id: Id, result: unknown): Response => ({ jsonrpc: '2.0', id, result }) as Response;

/** An answer with `error`, as a value that can be thrown: it goes on to whoever asked, unchanged. */
export class RpcError extends Error {
  override readonly name: string = 'RpcError';
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export const rpcErrorOf = ({ error }: JSONRPCErrorResponse): RpcError =>
  new RpcError(error.code, error.message, error.data);

export const errorResponse = (id: Id, { code, message, data }: RpcError): Response => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

/** JSON-RPC's own codes, and the one that both SDKs give a connection that was lost. */
export const CODES = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  lost: -32_000,
} as const;

/** Methods and `_meta` keys that are more here than something to pass on. */
export const METHODS = {
  initialize: 'initialize',
  initialized: 'notifications/initialized',
  discover: 'server/discover',
  call: 'tools/call',
  list: 'tools/list',
  ping: 'ping',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  toolsChanged: 'notifications/tools/list_changed',
  setLevel: 'logging/setLevel',
  subscribe: 'resources/subscribe',
  unsubscribe: 'resources/unsubscribe',
  listen: 'subscriptions/listen',
} as const;

/** Present on each request since the protocol of 2026-07-28, which knows no `initialize`. */
export const VERSION_META_KEY = 'io.modelcontextprotocol/protocolVersion';
/** On what the server sends of its own accord in that era: the id of the request that asked for it. */
export const SUBSCRIPTION_META_KEY = 'io.modelcontextprotocol/subscriptionId';
