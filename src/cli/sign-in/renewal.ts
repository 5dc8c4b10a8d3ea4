import * as z from 'zod';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { httpThrown } from '../../errors/http.ts';
import { PassingFailure, type Fetch } from '../../providers/mcp/sign-in.ts';
import { liveRuntime } from '../../runtime.ts';
import type { SignIn, SignInFile } from './file.ts';

/** An authorization server that has not answered by then is no longer waited for: others wait for the same sign-in. */
const ANSWER_MS = 30_000;
/** Some have no better answer to a refresh token that is dead than HTTP 500: so often, for so long, is no outage. */
const FAILING = { times: 5, ms: 600_000 };

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

/** What a server says that cannot just now. */
const turnedAway = (response: Response, url: string | URL): PassingFailure =>
  passing(`${new URL(url).host} answered HTTP ${response.status}`, {
    retryAfterMs: httpThrown(response).retryAfterMs,
  });

/** @throws PassingFailure where there is no answer */
async function received(send: Fetch, url: string | URL, init: RequestInit): Promise<Response> {
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
  const { status, headers } = response;
  return new Response([204, 205, 304].includes(status) ? null : text, { status, headers });
}

/**
 * The answer to a request of a sign-in, as a whole.
 * @throws PassingFailure where it gives none, or says that it cannot just now
 */
export async function answered(send: Fetch, url: string | URL, init: RequestInit): Promise<Response> {
  const response = await received(send, url, init);
  if (isPassing(response)) throw turnedAway(response, url);
  return response;
}

/**
 * A renewal that was answered with HTTP 5xx, as it counts together with those before it. The sign-in is kept in any
 * case: it is good again where it was an outage after all.
 */
const failedAgain = ({ failing, url: server }: SignIn, response: Response, url: string | URL, now: number) => {
  const since = Math.min(failing?.since ?? now, now);
  const times = (failing?.times ?? 0) + 1;
  if (times < FAILING.times || now - since < FAILING.ms)
    return { failing: { since, times }, error: turnedAway(response, url) };
  const { host } = new URL(url);
  const message =
    `The sign-in could not be renewed: ${host} answered HTTP ${response.status}, ${times} times since ` +
    `${new Date(since).toISOString()}. If it is not down, it has ended the sign-in: run spillway mcp login ${server}`;
  const options = { executed: false, classification: 'permanent' } as const;
  const error = new PassingFailure(new ToolExecutionError('transport_error', message, options));
  return { failing: { since, times }, error };
};

/** Keeps what a renewal gave. What others have made of the sign-in since it was asked for holds, and is given then. */
const keeping = async (file: SignInFile, token: string, response: Response, url: string | URL): Promise<Response> => {
  const kept = await file.read();
  if (kept?.tokens === undefined) return over();
  if (kept.tokens.refresh_token !== token) return Response.json(kept.tokens);
  const { url: _url, tokens: old, failing: _failing, ...rest } = kept;
  if (response.status >= 500) {
    const { failing, error } = failedAgain(kept, response, url, liveRuntime.wallNow());
    await file.write({ ...rest, tokens: old, failing });
    throw error;
  }
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
    const response = await received(send, url, init);
    if (isPassing(response) && response.status < 500) throw turnedAway(response, url);
    const keep = (): Promise<Response> => keeping(file, token, response, url);
    // A process that was stopped for too long has lost its turn, and takes another.
    return (await holds()) ? keep() : file.alone(keep);
  });
