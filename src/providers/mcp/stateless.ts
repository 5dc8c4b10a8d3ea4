import { read } from '../../errors/structure.ts';

/** Present in each request since the protocol of 2026-07-28, which knows no sessions. */
const VERSION_META_KEY = 'io.modelcontextprotocol/protocolVersion';
/** What a method acts on, which is named in a header, too (SEP-2243). */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** A text as a header takes it: as it is, or, where that would not be it any more, encoded as SEP-2243 has it. */
const headerText = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?/i.test(text)
    ? text
    : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;

/** The headers that repeat what a message of that protocol says; nothing for a message of an earlier one. */
export function statelessHeaders(message: unknown): Readonly<Record<string, string>> | undefined {
  const params = read(message, 'params');
  const version = read(read(params, '_meta'), VERSION_META_KEY);
  const method = read(message, 'method');
  if (typeof version !== 'string' || typeof method !== 'string') return undefined;
  const name = Object.hasOwn(NAMED_BY, method) ? read(params, NAMED_BY[method] ?? '') : undefined;
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': headerText(name) } : {}),
  };
}

export function withHeaders(given: RequestInit['headers'], more: Readonly<Record<string, string>>): Headers {
  const headers = new Headers(given);
  for (const [name, value] of Object.entries(more)) headers.set(name, value);
  return headers;
}

/** In that protocol a server answers an error of JSON-RPC with a status, too: the error is the answer. */
export async function answeredError(response: Response): Promise<Response | undefined> {
  if (response.headers.get('content-type')?.includes('application/json') !== true) return undefined;
  const text = await response.clone().text();
  try {
    const message: unknown = JSON.parse(text);
    if (read(message, 'error') === undefined || read(message, 'id') === null) return undefined;
  } catch {
    return undefined;
  }
  await response.body?.cancel();
  return new Response(text, { status: 200, headers: { 'content-type': 'application/json' } });
}
