/** Makers of what services and libraries throw, in the shape their sources give it. */

export const error = (message: string, fields: object = {}): Error => Object.assign(new Error(message), fields);

export const named = (name: string, message: string, fields: object = {}): Error => error(message, { name, ...fields });

/** `APIError` of openai: the body's `error`, copied up. */
export const openai = (
  status: number | undefined,
  message: string,
  type: string | null,
  code: string | null = null,
  headers: Record<string, string> = {},
): Error =>
  error(status === undefined ? message : `${status} ${message}`, {
    status,
    headers: new Headers(headers),
    error: { message, type, code, param: null },
    code,
    type,
    param: null,
    requestID: 'req_1',
  });

/** `APIError` of @anthropic-ai/sdk: the whole body as `error`. */
export const anthropic = (
  status: number | undefined,
  type: string,
  message: string,
  headers: Record<string, string> = {},
): Error => {
  const body = { type: 'error', error: { type, message }, request_id: 'req_1' };
  return error(`${status ?? ''} ${JSON.stringify(body)}`.trim(), {
    status,
    headers: new Headers(headers),
    error: body,
    type,
    requestID: 'req_1',
  });
};

/** `ApiError` of @google/genai: the body as the message. */
export const google = (status: number, rpc: string, message: string, details: readonly object[] = []): Error =>
  named('ApiError', JSON.stringify({ error: { code: status, message, status: rpc, details } }), { status });

/** A service exception of AWS SDK 3. */
export const aws = (name: string, status: number, message: string, fields: object = {}): Error =>
  named(name, message, {
    $fault: status < 500 ? 'client' : 'server',
    $metadata: { httpStatusCode: status, attempts: 1 },
    ...fields,
  });

/** A `ServiceError` of @grpc/grpc-js. */
export const grpc = (code: number, word: string, details: string): Error =>
  error(`${code} ${word}: ${details}`, { code, details, metadata: { get: () => [] } });

/** `APICallError` of the AI SDK. */
export const aiSdk = (
  statusCode: number | undefined,
  message: string,
  isRetryable: boolean,
  responseHeaders: Record<string, string> = {},
): Error =>
  named('AI_APICallError', message, {
    url: 'https://api.example.com/v1',
    statusCode,
    isRetryable,
    responseHeaders,
    responseBody: '{}',
  });

export const axios = (code: string, message: string, status?: number, headers: Record<string, string> = {}): Error =>
  named('AxiosError', message, {
    code,
    isAxiosError: true,
    config: {},
    request: {},
    ...(status === undefined ? {} : { status, response: { status, headers, data: {} } }),
  });

export const got = (name: string, code: string, message: string, statusCode?: number): Error =>
  named(name, message, {
    code,
    options: {},
    ...(statusCode === undefined ? {} : { response: { statusCode, headers: {} } }),
  });

/** What `fetch` throws: the reason is its cause. */
export const fetchFailed = (code: string, message: string, name = 'Error'): Error =>
  Object.assign(new TypeError('fetch failed'), { cause: named(name, message, { code }) });

export const system = (code: string, syscall: string, rest = ''): Error =>
  error(`${syscall} ${code}${rest}`, { code, syscall, errno: -1 });

export const answer = (status: number, headers: Record<string, string> = {}, statusText = ''): Response =>
  new Response(null, { status, headers, statusText });

export const mcpError = (code: number, message: string, data?: unknown): Error =>
  named('McpError', `MCP error ${code}: ${message}`, { code, data });

export const sdkError = (code: string, message: string, fields: object = {}): Error =>
  named('SdkError', message, { code, ...fields });

export const failed = (text: string): object => ({ isError: true, content: [{ type: 'text', text }] });

export const postgres = (code: string, message: string): Error =>
  error(message, { code, severity: 'ERROR', routine: 'exec', length: 100 });

export const mysql = (code: string, errno: number, message: string): Error =>
  error(message, { code, errno, sqlState: 'HY000', sqlMessage: message });

export const redis = (message: string): Error => named('ReplyError', message, { command: { name: 'get', args: [] } });
