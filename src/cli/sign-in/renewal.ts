import * as z from 'zod';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { httpThrown } from '../../errors/http.ts';
import { PassingFailure, type Fetch } from '../../providers/mcp/sign-in.ts';
import type { SignInFile } from './file.ts';

/** An authorization server that has not answered by then is no longer waited for: others wait for the same sign-in. */
const ANSWER_MS = 30_000;

const tokensSchema = z.looseObject({
  access_token: z.string(),
  token_type: z.string(),
  refresh_token: z.string().optional(),
});

/** In the words of OAuth: a person has to sign in. */
const over = (): Response => Response.json({ error: 'invalid_grant' }, { status: 400 });

const passing = (
  why: string,
  more: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown },
): PassingFailure =>
  new PassingFailure(
    new ToolExecutionError(
      'transport_error',
      `The sign-in could not be renewed: ${why}. It is kept, and can be renewed later`,
      { ...more, executed: false },
    ),
  );

const isPassing = ({ status }: Response): boolean => status === 408 || status === 429 || status >= 500;

/** Whether a request of a sign-in asks for new tokens in exchange for old ones. */
export const isRenewal = (init: RequestInit): init is RequestInit & { readonly body: URLSearchParams } =>
  init.body instanceof URLSearchParams && init.body.get('grant_type') === 'refresh_token';

/**
 * The answer to a request of a sign-in, as a whole.
 * @throws PassingFailure where it gives none, or says that it cannot just now
 */
export async function answered(send: Fetch, url: string | URL, init: RequestInit): Promise<Response> {
  const { host } = new URL(url);
  const limit = AbortSignal.timeout(ANSWER_MS);
  const signal = init.signal === null || init.signal === undefined ? limit : AbortSignal.any([init.signal, limit]);
  let response: Response;
  let text: string;
  try {
    response = await send(url, { ...init, signal });
    text = await response.text();
  } catch (cause) {
    throw passing(`${host} gave no answer`, { cause });
  }
  if (isPassing(response))
    throw passing(`${host} answered HTTP ${response.status}`, { retryAfterMs: httpThrown(response).retryAfterMs });
  const { status, headers } = response;
  return new Response([204, 205, 304].includes(status) ? null : text, { status, headers });
}

/** Keeps what a renewal gave. What others have made of the sign-in since it was asked for holds, and is given then. */
const keeping = async (file: SignInFile, token: string, response: Response): Promise<Response> => {
  const kept = await file.read();
  if (kept?.tokens === undefined) return over();
  if (kept.tokens.refresh_token !== token) return Response.json(kept.tokens);
  const { url: _url, tokens: old, ...rest } = kept;
  const said: unknown = await response
    .clone()
    .json()
    .catch(() => undefined);
  if (response.ok) {
    const { data } = tokensSchema.safeParse(said);
    // Where one refresh token is good for many renewals, it is not said again. Whose they are is ours to say.
    if (data !== undefined) await file.write({ ...rest, tokens: { ...old, ...data, issuer: old.issuer } });
  } else if (z.object({ error: z.literal('invalid_grant') }).safeParse(said).success) await file.write(rest);
  return response;
};

/**
 * Renews what is kept of a sign-in, of one piece: nobody else sends the same refresh token, forgets the sign-in, or
 * makes it anew meanwhile. What another process has renewed since is given as it is.
 */
export const renewed = (
  file: SignInFile,
  send: Fetch,
  url: string | URL,
  init: RequestInit & { readonly body: URLSearchParams },
): Promise<Response> =>
  file.alone(async (holds) => {
    const kept = await file.read();
    const token = kept?.tokens?.refresh_token;
    if (kept?.tokens === undefined || token === undefined) return over();
    if (init.body.get('refresh_token') !== token) return Response.json(kept.tokens);
    const response = await answered(send, url, init);
    const keep = (): Promise<Response> => keeping(file, token, response);
    // A process that was stopped for too long has lost its turn, and takes another.
    return (await holds()) ? keep() : file.alone(keep);
  });
