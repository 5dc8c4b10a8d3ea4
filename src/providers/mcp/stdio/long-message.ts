import type { JSONRPCErrorResponse } from '@modelcontextprotocol/sdk/types.js';
import type { LongLine } from './line-reader.ts';

const VERSION = String.raw`"jsonrpc": ?"2\.0"`;
const ID = String.raw`"id": ?(\d+|"(?:[^"\\]|\\.){1,256}")`;
const ID_LAST = new RegExp(`, ?${ID}(?:, ?${VERSION})?\\}\\s*$`);

/** An id as JSON, which only looks like one where a line is no JSON. */
const idIn = (json: string | undefined): string | number | undefined => {
  try {
    return json === undefined ? undefined : (JSON.parse(json) as string | number);
  } catch {
    return undefined;
  }
};

/** Messages whose id comes before one of these keys, or after it: as the SDKs write them, each in its language. */
const idBeside = (keys: string): ((line: LongLine) => string | number | undefined) => {
  const idFirst = new RegExp(`^\\{(?:${VERSION}, ?)?${ID}, ?(?:${VERSION}, ?)?"(?:${keys})":`);
  const keyFirst = new RegExp(`^\\{(?:${VERSION}, ?)?"(?:${keys})":`);
  return ({ head, tail }) =>
    idIn(idFirst.exec(head)?.[1] ?? (keyFirst.test(head) ? ID_LAST.exec(tail)?.[1] : undefined));
};

const answeredId = idBeside('result|error');
const askedId = idBeside('method');

/** JSON-RPC's codes of a request that cannot be served, and of a failure while it was. */
const [INVALID_REQUEST, INTERNAL] = [-32_600, -32_603];

const errorOf = (id: string | number, code: number, message: string): JSONRPCErrorResponse => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

const ours = new WeakSet<object>();

/** Whether an error takes the place of an answer that was too long, and was not said by the server. */
export const isOfLongAnswer = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && ours.has(error);

/**
 * What takes the place of an answer that is too long to be read: the request that it answers fails, and no other.
 * `undefined` where the line is no answer, or where its ends do not say to what.
 */
export const longAnswer = (line: LongLine, maxBytes: number): JSONRPCErrorResponse | undefined => {
  const id = answeredId(line);
  if (id === undefined) return undefined;
  const answer = errorOf(id, INTERNAL, `The answer has ${line.bytes} bytes, and ${maxBytes} are read at most`);
  ours.add(answer.error);
  return answer;
};

/** What a request is answered with that is too long to be read. `undefined` where the line is no request. */
export const refusalOfLong = (line: LongLine, maxBytes: number): JSONRPCErrorResponse | undefined => {
  const id = askedId(line);
  const said = `The request has ${line.bytes} bytes, and ${maxBytes} are read at most`;
  return id === undefined ? undefined : errorOf(id, INVALID_REQUEST, said);
};
