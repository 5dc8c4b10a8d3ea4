import { Hono } from 'hono';
import { isToolExecutionError } from '../contract/tool-error.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import type { BreakerOrder, Breakers } from '../layer/breakers.ts';
import type { Flush, LayerReport, ToolReport } from '../operate/inspection.ts';
import type { BreakerTarget, OrderReport } from '../operate/orders.ts';
import { createAdminGuard, type AdminGuardOptions } from './admin/guard.ts';
import { answerApproval } from './admin/approvals.ts';
import type { ApprovalsInStore } from '../gate/answers.ts';
import { readOrder, type AdminOrder } from './admin/order.ts';
import { AdminRefused, refusalOf, type AdminRefusal } from './admin/refusal.ts';
import { streamOf } from './chunk-stream.ts';

export { AdminRefused, type AdminRefusal, type AdminRefusalReason } from './admin/refusal.ts';
export type { AdminGuardOptions } from './admin/guard.ts';

/** What the page needs of a layer; the one that `createSpillway` makes has it. */
export interface AdminLayer {
  /** The registered tools, as their calls run now. */
  readonly tools: readonly ToolReport[];
  /** The layer's breakers, to know names that are no tool's. */
  readonly breakers: Pick<Breakers, 'list'>;
  /** How the layer stands: the answer to `GET`. */
  inspect(): Promise<LayerReport>;
  /**
   * Gives an order to the breakers of one tool or of all. Rejects with a `RangeError` for a name that is neither a
   * tool's nor a breaker's.
   */
  orderBreakers(order: BreakerOrder, what: BreakerTarget): Promise<OrderReport>;
  /**
   * Forgets remembered results and gives their number. Rejects with `store_unavailable` where the store does not
   * answer.
   */
  flush(what: Flush): Promise<number>;
}

/** A text for scrapers; `prometheusSink()` makes one. */
export interface MetricsSource {
  /** The `Content-Type` of an answer with `text()`. */
  readonly contentType: string;
  /** All metrics as one text, made anew for each scrape. */
  text(): string | PromiseLike<string>;
  /** The text in pieces, in the format that the `Accept` header asks for; by default it is `text()`, whoever asks. */
  scrape?(accept?: string | null): {
    /** The `Content-Type` of this answer. */
    readonly contentType: string;
    /** The text in pieces, to be read once. */
    readonly chunks: AsyncIterable<string>;
  };
}

/** What an admin page serves beside the layer, and how it refuses. */
export interface AdminOptions extends AdminGuardOptions {
  /**
   * The layer's approvals, as given to `createSpillway`: `GET` of `/debug/tool-reliability/approvals` lists the
   * questions that nobody has answered, with their inputs, and `POST` of `{ id, approved, by?, reason? }` answers one.
   * Whoever has the token can approve. Default: none, and no such path.
   */
  readonly approvals?: ApprovalsInStore;
  /** Metrics served at `/metrics`, with the same token. Default: none, and no such path. */
  readonly metrics?: MetricsSource;
  /** The longest body that is read, in bytes, 256 to 16,777,216. Default 65,536; a longer one is refused with 413. */
  readonly maxBodyBytes?: number;
  /** Called with every request that is refused; what it throws is ignored. Default: nobody is. */
  readonly onRefused?: (refusal: AdminRefusal) => void;
}

/** What a `POST` answers. */
export interface AdminAnswer {
  /** The action that was asked for. */
  readonly action: AdminOrder['action'];
  /** The breakers that got the order, as they stand now; absent for `flush`. */
  readonly changed?: OrderReport['breakers'];
  /** How many results were forgotten; present for `flush` alone. */
  readonly flushed?: number;
  /**
   * Why the order has no effect yet, a sentence each, such as a switch that is off; absent where there is nothing to
   * say.
   */
  readonly warnings?: readonly string[];
}

/** An admin page as a function of requests, for any server. */
export interface AdminHandler {
  /** Answers a request; never rejects. `from` says who asks, for `onRefused`. */
  fetch(
    request: Request,
    from?: {
      /** The address of the client, where the server knows it; anything but a text is left out. */
      readonly remoteAddress?: unknown;
    },
  ): Promise<Response>;
  /** The token that requests must bear: the one given, or the one made. Show it only to those who may ask. */
  readonly token: string;
}

/** The path of the page: `GET` and `POST`. */
export const ADMIN_PATH = '/debug/tool-reliability';
/** The path of the approvals: `GET` and `POST`, where `approvals` was given. */
export const APPROVALS_PATH = '/debug/tool-reliability/approvals';
/** The path of the metrics: `GET`, where `metrics` was given. */
export const METRICS_PATH = '/metrics';

const BODY_BYTES_MAX = 65_536;
const OPTION_KEYS = ['token', 'allowedHosts', 'allowedOrigins', 'approvals', 'metrics', 'maxBodyBytes', 'onRefused'];
/** Nobody keeps an answer, or takes it for something else. No CORS headers: pages of others read nothing. */
const ANSWER_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

const json = (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(`${JSON.stringify(value)}\n`, {
    status,
    headers: { ...ANSWER_HEADERS, 'content-type': 'application/json', ...headers },
  });

/** Asked before anything is changed. */
const checkTarget = ({ tools, breakers }: AdminLayer, { action, target }: AdminOrder): void => {
  if (!('tool' in target)) return;
  const found = tools.find(({ name }) => name === target.tool);
  if (found === undefined && !breakers.list().some(({ toolName }) => toolName === target.tool))
    throw new AdminRefused('unknown_tool', `there is no tool of that name; GET ${ADMIN_PATH} lists them`);
  if (action !== 'flush' && found !== undefined && found.breaker === undefined)
    throw new AdminRefused(
      'no_breaker',
      'the tool has no breaker (policy.breaker is false); give it one, or set its mode',
    );
};

const perform = async (layer: AdminLayer, order: AdminOrder): Promise<AdminAnswer> => {
  checkTarget(layer, order);
  if (order.action === 'flush') return { action: order.action, flushed: await layer.flush(order.target) };
  const { breakers, warnings } = await layer.orderBreakers(order.action, order.target);
  return { action: order.action, changed: breakers, ...(warnings.length === 0 ? {} : { warnings }) };
};

type AdminApp = Hono<{ Bindings: { readonly remoteAddress?: unknown } }>;

const otherMethod = (allow: string) => (): never => {
  throw new AdminRefused('method', `this path takes ${allow}`, { headers: { allow } });
};

const serveApprovals = (app: AdminApp, approvals: ApprovalsInStore, maxBodyBytes: number): void => {
  app.get(APPROVALS_PATH, async () => json({ pending: await approvals.pending() }));
  app.post(APPROVALS_PATH, async ({ req }) => json(await answerApproval(approvals, req.raw, maxBodyBytes)));
  app.all(APPROVALS_PATH, otherMethod('GET, HEAD, POST'));
};

const refused = (thrown: Error): AdminRefused => {
  if (thrown instanceof AdminRefused) return thrown;
  if (isToolExecutionError(thrown) && thrown.kind === 'store_unavailable')
    return new AdminRefused(
      'store_unavailable',
      'the store did not answer, and what was asked may be done in part; ask again',
      { cause: thrown },
    );
  return new AdminRefused('failed', 'it could not be answered: a defect of the layer, of its store or of its metrics', {
    cause: thrown,
  });
};

/**
 * A layer's admin page over HTTP, for any server that speaks `Request` and `Response`. `GET /debug/tool-reliability`
 * answers with `inspect()`, `POST` with what it changed: `{ "action": "force_open" | "reset" | "disable" | "flush",
 * "tool": "..." }`, or `"session": "..."` (of `flush` only), or `"all": true`. An order to breakers holds for every
 * scope of this process, those to come included, and stands until the next one or the process' end; `reset` also closes
 * what processes share. Inputs, results and keys are in no answer but for the inputs of `approvals`;
 * the scopes of breakers are the names of tenants.
 *
 * Refused, reported to `onRefused`, with nothing changed: a Host that is not ours, a strange Origin, a missing or wrong
 * token, and whatever is not
 * exactly one order.
 *
 * @param layer the layer, from `createSpillway`
 * @param options the token (by default one is made), further hosts and origins, metrics, limits
 * @throws RangeError for an option out of its range
 *
 * @example const admin = adminHandler(spillway, { onRefused: ({ reason, status }) => log.push([reason, status]) });
 * const request = new Request('http://localhost/debug/tool-reliability', { headers: { authorization: `Bearer
 * ${admin.token}` } }); const { breakers } = await (await admin.fetch(request)).json();
 */
export function adminHandler(layer: AdminLayer, options: AdminOptions = {}): AdminHandler {
  checkKeys('adminHandler', options, OPTION_KEYS);
  const { approvals, metrics, maxBodyBytes = BODY_BYTES_MAX, onRefused } = options;
  checkNumber('maxBodyBytes', maxBodyBytes, integer(256, 16_777_216));
  if (metrics !== undefined && (typeof metrics.text !== 'function' || typeof metrics.contentType !== 'string'))
    throw new RangeError('metrics must have a contentType and a function text; prometheusSink() makes one');
  const guard = createAdminGuard(options);

  // The path as it was sent: two spellings of one path are two paths to a proxy in front.
  const app: AdminApp = new Hono({
    strict: true,
    getPath: ({ url }) => new URL(url).pathname,
  });
  app.use(async ({ req }, next) => {
    guard.check(req.raw);
    await next();
  });
  app.get(ADMIN_PATH, async () => json(await layer.inspect()));
  app.post(ADMIN_PATH, async ({ req }) => json(await perform(layer, await readOrder(req.raw, maxBodyBytes))));
  app.all(ADMIN_PATH, otherMethod('GET, HEAD, POST'));
  if (approvals !== undefined) serveApprovals(app, approvals, maxBodyBytes);
  if (metrics !== undefined) {
    app.get(METRICS_PATH, async ({ req }) => {
      const scrape = metrics.scrape?.(req.header('accept'));
      const body = scrape === undefined ? await metrics.text() : await streamOf(scrape.chunks);
      const { contentType } = scrape ?? metrics;
      return new Response(body, { headers: { ...ANSWER_HEADERS, 'content-type': contentType, vary: 'accept' } });
    });
    app.all(METRICS_PATH, otherMethod('GET, HEAD'));
  }
  app.notFound(() => {
    throw new AdminRefused('path', `there is nothing here; the path is ${ADMIN_PATH}`);
  });
  app.onError((thrown, { req, env }) => {
    const refusal = refused(thrown);
    try {
      onRefused?.(refusalOf(refusal, req.method, env?.remoteAddress));
    } catch {
      // A log's failure is its own.
    }
    return json({ error: { reason: refusal.reason, message: refusal.message } }, refusal.status, refusal.headers);
  });
  return {
    fetch: async (request, from = {}) => app.fetch(request, { remoteAddress: from.remoteAddress }),
    token: guard.token,
  };
}
