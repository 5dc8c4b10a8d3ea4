import { Hono } from 'hono';
import { Subject } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { emptyTrace } from '../inspect/model/empty.ts';
import type { TraceModel } from '../inspect/model.ts';
import { pageAsset, type PageAsset } from '../inspect/page-asset.ts';
import { shared } from '../inspect/shares.ts';
import { liveRuntime } from '../runtime.ts';
import { createAdminGuard, type AdminGuardOptions } from './admin/guard.ts';
import { AdminRefused, refusalOf, type AdminRefusal } from './admin/refusal.ts';
import { streamOf } from './chunk-stream.ts';
import type { LineSource } from './inspector/event-log.ts';
import { eventStream, placeIn } from './inspector/sse.ts';

/** Who may look, and who is told of refusals. */
export interface InspectorGuardOptions extends AdminGuardOptions {
  /** Called with every request that is refused; what it throws is ignored. Default: nobody is. */
  readonly onRefused?: (refusal: AdminRefusal) => void;
}

/** What was told so far, for what is handed on. */
export interface Told {
  readonly model: () => Promise<TraceModel>;
  /** Another trace to compare with. */
  readonly other?: () => Promise<TraceModel>;
}

export interface InspectorHandler {
  fetch(request: Request, from: { readonly remoteAddress?: unknown }): Promise<Response>;
  readonly token: string;
  /** Ends the streams of events. */
  end(): void;
}

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy':
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
} as const;

const answer = (body: string | ReadableStream<Uint8Array>, type: string, status = 200): Response =>
  new Response(body, { status, headers: { ...HEADERS, 'content-type': type } });

/** The page, which asks for everything else with the token of its own address. */
const pageHtml = (token: string): string => {
  const query = `token=${encodeURIComponent(token).replaceAll("'", '%27')}`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>spillway inspect</title>
<link rel="icon" href="icon.svg?${query}">
<link rel="stylesheet" href="inspect.css?${query}">
<body><div id="app"></div>
<script src="inspect.js?${query}"></script>
`;
};

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M1 4h9M4 8h11M1 12h6" stroke="#0969da" ' +
  'stroke-width="2"/></svg>';

type App = Hono<{ Bindings: { readonly remoteAddress?: unknown } }>;

const refusedAnswer = (
  thrown: Error,
  method: string,
  remoteAddress: unknown,
  onRefused: InspectorGuardOptions['onRefused'],
): Response => {
  const refusal =
    thrown instanceof AdminRefused
      ? thrown
      : new AdminRefused('failed', 'it could not be answered: a defect of the inspector', { cause: thrown });
  try {
    onRefused?.(refusalOf(refusal, method, remoteAddress));
  } catch {
    // A log's failure is its own.
  }
  // A token that is wrong is no question of logging in: a person opens another address.
  const isToken = refusal.reason === 'token';
  const body = JSON.stringify({ error: { reason: refusal.reason, message: refusal.message } });
  return new Response(`${body}\n`, {
    status: isToken ? 403 : refusal.status,
    headers: { ...HEADERS, 'content-type': 'application/json', ...(isToken ? {} : refusal.headers) },
  });
};

const addPage = (app: App, token: string, asset: () => Promise<PageAsset>): void => {
  app.get('/', () => answer(pageHtml(token), 'text/html; charset=utf-8'));
  app.get('/inspect.js', async () => answer((await asset()).script, 'text/javascript; charset=utf-8'));
  app.get('/inspect.css', async () => answer((await asset()).style, 'text/css; charset=utf-8'));
  app.get('/icon.svg', () => answer(ICON, 'image/svg+xml'));
};

/** What can be handed on. */
const addShares = (app: App, told: Told): void => {
  app.get('/share/:name', async ({ req }) => {
    const [model, other] = await Promise.all([told.model(), told.other?.()]);
    const found = shared(req.param('name'), model, req.query('turn') ?? '', other);
    if (found === undefined) throw new AdminRefused('path', 'there is no such turn any more, or nothing of that name');
    return answer(found.text, found.type);
  });
};

/** Everything in it is read; nothing can be ordered. */
export function inspectorHandler(
  source: LineSource,
  options: InspectorGuardOptions,
  told: Told = { model: () => Promise.resolve(emptyTrace()) },
  runtime: Runtime = liveRuntime,
  asset: () => Promise<PageAsset> = pageAsset,
): InspectorHandler {
  const { onRefused, ...guarded } = options;
  const guard = createAdminGuard(guarded);
  const end$ = new Subject<void>();
  const app: App = new Hono({
    strict: true,
    getPath: ({ url }) => new URL(url).pathname,
  });
  app.use(async ({ req }, next) => {
    guard.check(req.raw, req.query('token'));
    if (req.method !== 'GET' && req.method !== 'HEAD')
      throw new AdminRefused('method', 'it can only be read: GET, HEAD', { headers: { allow: 'GET, HEAD' } });
    await next();
  });
  addPage(app, guard.token, asset);
  app.get('/events', async ({ req }) => {
    const place = placeIn(req.header('last-event-id') ?? null, source);
    return answer(await streamOf(eventStream(source, place, runtime, end$)), 'text/event-stream; charset=utf-8');
  });
  addShares(app, told);
  app.notFound(() => {
    throw new AdminRefused('path', 'there is nothing here; the page is /');
  });
  app.onError((thrown, { req, env }) => refusedAnswer(thrown, req.method, env?.remoteAddress, onRefused));
  return {
    fetch: async (request, { remoteAddress }) => app.fetch(request, { remoteAddress }),
    token: guard.token,
    end: () => end$.next(),
  };
}
