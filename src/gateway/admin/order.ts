import * as z from 'zod';
import type { BreakerOrder } from '../../layer/breakers.ts';
import { AdminRefused } from './refusal.ts';

/** What can be asked for, and of what. */
export type AdminOrder =
  | { readonly action: BreakerOrder; readonly target: { readonly tool: string } | { readonly all: true } }
  | {
      readonly action: 'flush';
      readonly target: { readonly tool: string } | { readonly session: string } | { readonly all: true };
    };

export const ADMIN_ACTIONS = ['force_open', 'reset', 'disable', 'flush'] as const;

interface OrderBody {
  readonly action: (typeof ADMIN_ACTIONS)[number];
  readonly tool?: string;
  readonly session?: string;
  readonly all?: true;
}

const bodySchema: z.ZodType<OrderBody> = z.strictObject({
  action: z.enum(ADMIN_ACTIONS),
  tool: z.string().min(1).max(512).exactOptional(),
  session: z.string().min(1).max(512).exactOptional(),
  all: z.literal(true).exactOptional(),
});

const malformed = (message: string, cause?: unknown): AdminRefused => new AdminRefused('malformed', message, { cause });

const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** Reads no more of a body than is allowed: what says that it is longer is not read at all. */
const readBytes = async ({ headers, body }: Request, maxBytes: number): Promise<Uint8Array> => {
  const tooLarge = new AdminRefused(
    'body_too_large',
    `the body is longer than ${maxBytes} bytes; an order takes a few dozen`,
  );
  if (Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
  const next = async (): Promise<Uint8Array | undefined> => {
    try {
      return (await reader?.read())?.value;
    } catch (error) {
      throw malformed('the body broke off', error);
    }
  };
  for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
    length += chunk.length;
    if (length > maxBytes) {
      // The answer does not wait until the rest of the body has been given up.
      void reader?.cancel().catch(() => undefined);
      throw tooLarge;
    }
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
};

const parse = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw malformed('the body is not JSON in UTF-8', error);
  }
};

const orderOf = ({ action, tool, session, all }: OrderBody): AdminOrder => {
  const targets = [tool, session, all].filter((target) => target !== undefined).length;
  if (targets !== 1) throw malformed(`an order is for one of tool, session or all, not for ${targets} of them`);
  if (action === 'flush')
    return { action, target: tool !== undefined ? { tool } : session !== undefined ? { session } : { all: true } };
  if (session !== undefined) throw malformed(`${action} is for a tool or all: breakers know no sessions`);
  return { action, target: tool !== undefined ? { tool } : { all: true } };
};

/**
 * The body of a request.
 * @throws AdminRefused unless it is JSON of a bearable length
 */
export async function readOrderBody(request: Request, maxBytes: number): Promise<unknown> {
  const { headers } = request;
  if (!JSON_TYPE.test(headers.get('content-type') ?? '') || headers.has('content-encoding'))
    throw new AdminRefused('content_type', 'an order is plain JSON; send Content-Type: application/json');
  return parse(await readBytes(request, maxBytes));
}

/**
 * What a request asks for.
 * @throws AdminRefused unless it is JSON of a bearable length that asks for one thing that there is; values are not
 * repeated
 */
export async function readOrder(request: Request, maxBytes: number): Promise<AdminOrder> {
  const { success, data, error } = bodySchema.safeParse(await readOrderBody(request, maxBytes));
  if (success) return orderOf(data);
  if (error.issues.some(({ path }) => path[0] === 'action'))
    throw new AdminRefused('unknown_action', `action must be one of ${ADMIN_ACTIONS.join(', ')}`);
  const [at] = error.issues.flatMap(({ path }) => path).map(String);
  throw malformed(
    at === undefined
      ? 'an order is an object with action and one of tool, session or all, and nothing else'
      : `${at} must be ${at === 'all' ? 'true' : 'a text of 1 to 512 characters'}`,
  );
}
