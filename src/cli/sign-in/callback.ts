import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subject, dematerialize, take, type Observable } from 'rxjs';
import { UsageError } from '../arguments/usage.ts';

/** Where the browser of a person who signs in comes back to. */
export interface Callback {
  readonly redirectUrl: string;
  /** The code that it came back with; errors where the person, or their server, said no. */
  readonly code$: Observable<string>;
  readonly close: () => Promise<void>;
}

const PATH = '/callback';
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'",
  'referrer-policy': 'no-referrer',
  connection: 'close',
};

const page = (text: string): string => `<!doctype html><meta charset="utf-8"><title>spillway</title><p>${text}</p>\n`;

/** What an authorization server says of a refusal is a word of a list; whatever else it is, is not shown. */
const wordOf = (error: string): string => (/^[\w-]{1,64}$/.test(error) ? error : 'an error without a name');

type Came = { readonly kind: 'N'; readonly value: string } | { readonly kind: 'E'; readonly error: Error };

/** What a request brings back; `undefined` for one that is not ours. */
const cameBack = ({ method, url = '', headers }: IncomingMessage, state: string, host: string): Came | undefined => {
  const asked = URL.parse(url, `http://${host}`);
  if (method !== 'GET' || headers.host !== host || asked?.pathname !== PATH) return undefined;
  const { searchParams } = asked;
  if (searchParams.get('state') !== state) return undefined;
  const code = searchParams.get('code');
  if (code !== null && code !== '') return { kind: 'N', value: code };
  const error = wordOf(searchParams.get('error') ?? '');
  return { kind: 'E', error: new Error(`the sign-in was refused: ${error}`) };
};

/**
 * Listens on this machine only, for one browser: whoever comes without the state that its sign-in began with is sent
 * away.
 *
 * @param state what the browser has to bring
 * @param port 0 for a free one
 * @throws UsageError where the port is taken
 */
export async function openCallback(state: string, port: number): Promise<Callback> {
  const came$ = new Subject<Came>();
  let host = '';
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const came = cameBack(request, state, host);
    const text =
      came === undefined ? 'This is no sign-in of spillway.' : 'spillway has heard. You can close this page.';
    response.writeHead(came === undefined ? 404 : 200, HEADERS).end(page(text));
    if (came !== undefined) came$.next(came);
  };
  const server = createServer(answer);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(new UsageError(`--port ${port} cannot be listened at (${error.code})`, { cause: error })),
    );
    server.listen(port, '127.0.0.1', resolve);
  });
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { redirectUrl: `http://${host}${PATH}`, code$: came$.pipe(dematerialize(), take(1)), close };
}
