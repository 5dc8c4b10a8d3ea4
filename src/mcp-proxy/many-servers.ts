import {
  EMPTY,
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  first,
  forkJoin,
  from,
  map,
  mergeMap,
  of,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { VERSION } from '../contract/version.ts';
import { attemptTimeout } from '../operators/attempt-timeout.ts';
import type { Backend, Forwarded } from './backend.ts';
import { CODES, METHODS, RpcError, isRecord, type Params } from './message.ts';
import { withTaskIds } from './tasks.ts';
import type { McpUpstream } from './upstream.ts';

/** A page of a list that takes longer is left out. */
const LIST_MS = 20_000;
/** Pages of one list that are read of a server. */
const PAGES_MAX = 64;

/** Lists, and what identifies an item of each. Tools and prompts go by names, which several servers may share. */
const LISTS: Readonly<Record<string, { readonly items: string; readonly key: string; readonly capability: string }>> = {
  'tools/list': { items: 'tools', key: 'name', capability: 'tools' },
  'prompts/list': { items: 'prompts', key: 'name', capability: 'prompts' },
  'resources/list': { items: 'resources', key: 'uri', capability: 'resources' },
  'resources/templates/list': { items: 'resourceTemplates', key: 'uriTemplate', capability: 'resources' },
  'tasks/list': { items: 'tasks', key: 'taskId', capability: 'tasks' },
};
/** Names that carry that of their server; the other keys are unique as they are. */
const NAMED: ReadonlySet<string> = new Set(['tools', 'prompts']);

const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

const notFound = (method: string): RpcError => new RpcError(CODES.methodNotFound, `Method not found: ${method}`);

/** Capabilities of several servers as those of one. */
const joined = (left: unknown, right: unknown): unknown => {
  if (!isRecord(left) || !isRecord(right)) return right ?? left;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries([...keys].map((key) => [key, joined(left[key], right[key])]));
};

/** Several servers as one: their tools, prompts and tasks behind their names, all else as it is. */
class ManyServers implements Backend {
  readonly upstreams: readonly McpUpstream[];
  readonly #note: (text: string) => void;
  readonly #runtime: Runtime;
  /** What each server said that it can do; one that did not start can do nothing. */
  readonly #able = new Map<McpUpstream, Readonly<Record<string, unknown>>>();
  /** Which server a resource or a template belongs to. */
  readonly #owners = new Map<string, McpUpstream>();

  constructor(upstreams: readonly McpUpstream[], note: (text: string) => void, runtime: Runtime) {
    this.upstreams = upstreams;
    this.#note = note;
    this.#runtime = runtime;
  }

  toolOf(full: string): { readonly upstream: McpUpstream; readonly name: string } | undefined {
    const upstream = this.upstreams.find(({ name }) => full.startsWith(`${name}.`));
    return upstream === undefined ? undefined : { upstream, name: full.slice(upstream.name.length + 1) };
  }

  notify(method: string, params: Params | undefined): void {
    for (const upstream of this.upstreams) upstream.notify(method, params);
  }

  request$(asked: Forwarded): Observable<unknown> {
    const { method, params } = asked;
    if (method === METHODS.initialize) return this.#initialize$(asked);
    // A client can name any method, and some names every object has.
    const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
    if (list !== undefined) return this.#list$(asked, list);
    if (method === METHODS.call)
      return throwError(() => new RpcError(CODES.invalidParams, `Tool ${String(params?.['name'])} not found`));
    if (method === METHODS.setLevel) return this.#all$(asked, 'logging').pipe(map(() => ({})));
    if (method === 'prompts/get') return this.#named$(asked);
    if (method === 'completion/complete') return this.#completed$(asked);
    if (method.startsWith('tasks/')) return this.#task$(asked);
    const key = params?.['uri'];
    return typeof key === 'string' ? this.#owned$(asked, key) : throwError(() => notFound(method));
  }

  #withAbility(capability: string): readonly McpUpstream[] {
    return this.upstreams.filter((upstream) => this.#able.get(upstream)?.[capability] !== undefined);
  }

  #initialize$(asked: Forwarded): Observable<unknown> {
    const results$ = this.upstreams.map((upstream) =>
      upstream.request$(asked).pipe(
        // One that starts and says nothing has not started.
        attemptTimeout(upstream.connectTimeoutMs, this.#runtime),
        map((result) => [upstream, recordOf(result)] as const),
        catchError((error: Error) => {
          this.#note(`${upstream.name}: its tools are left out: ${error.message}`);
          return of(undefined);
        }),
      ),
    );
    return forkJoin(results$).pipe(
      map((answers) => {
        const started = answers.filter((answer) => answer !== undefined);
        if (started.length === 0) throw new RpcError(CODES.lost, 'None of the servers could be started');
        for (const [upstream, { capabilities }] of started) this.#able.set(upstream, recordOf(capabilities));
        return initialized(started);
      }),
    );
  }

  #page$(
    upstream: McpUpstream,
    asked: Forwarded,
    items: string,
    page = 1,
    cursor?: string,
  ): Observable<readonly unknown[]> {
    const { cursor: _, ...rest } = recordOf(asked.params);
    const params = cursor === undefined ? rest : { ...rest, cursor };
    return upstream.request$({ ...asked, params }).pipe(
      // The others' items do not wait for a server that hangs.
      attemptTimeout(LIST_MS, this.#runtime),
      mergeMap((result) => {
        const { [items]: found, nextCursor } = recordOf(result);
        const here = Array.isArray(found) ? (found as readonly unknown[]) : [];
        if (typeof nextCursor !== 'string' || page >= PAGES_MAX) return of(here);
        return this.#page$(upstream, asked, items, page + 1, nextCursor).pipe(map((more) => [...here, ...more]));
      }),
    );
  }

  #list$(asked: Forwarded, { items, key, capability }: (typeof LISTS)[string]): Observable<unknown> {
    const pages$ = this.#withAbility(capability).map((upstream) =>
      this.#page$(upstream, asked, items).pipe(
        map((found) => found.filter(isRecord).map((item) => this.#known(upstream, item, items, key))),
        catchError((error: Error) => {
          this.#note(`${upstream.name}: ${asked.method} failed: ${error.message}`);
          return of([]);
        }),
      ),
    );
    return forkJoin(pages$).pipe(
      defaultIfEmpty([]),
      map((pages) => ({ [items]: pages.flat() })),
    );
  }

  #known(upstream: McpUpstream, item: Readonly<Record<string, unknown>>, items: string, key: string): unknown {
    const { [key]: id } = item;
    if (items === 'tasks') return this.told(upstream, item);
    if (NAMED.has(items)) return { ...item, name: `${upstream.name}.${String(id)}` };
    if (typeof id === 'string') this.#owners.set(id, upstream);
    return item;
  }

  #all$(asked: Forwarded, capability: string): Observable<unknown> {
    const able = this.#withAbility(capability);
    if (able.length === 0) return throwError(() => notFound(asked.method));
    return forkJoin(able.map((upstream) => upstream.request$(asked)));
  }

  #named$(asked: Forwarded): Observable<unknown> {
    const full = String(asked.params?.['name']);
    const target = this.toolOf(full);
    if (target === undefined) return throwError(() => new RpcError(CODES.invalidParams, `Prompt ${full} not found`));
    return target.upstream.request$({ ...asked, params: { ...asked.params, name: target.name } });
  }

  /** Each server counts its tasks for itself, perhaps from one. */
  #task$(asked: Forwarded): Observable<unknown> {
    const full = String(asked.params?.['taskId']);
    const owner = this.toolOf(full)?.upstream;
    if (owner === undefined) return throwError(() => new RpcError(CODES.invalidParams, `Task ${full} not found`));
    const params = this.meant(owner, asked.params) as Params;
    return owner.request$({ ...asked, params }).pipe(map((result) => this.told(owner, result)));
  }

  told(upstream: McpUpstream, said: unknown): unknown {
    return withTaskIds(said, (taskId) => `${upstream.name}.${taskId}`);
  }

  meant({ name }: McpUpstream, said: unknown): unknown {
    return withTaskIds(said, (taskId) => (taskId.startsWith(`${name}.`) ? taskId.slice(name.length + 1) : taskId));
  }

  #completed$(asked: Forwarded): Observable<unknown> {
    const ref = recordOf(asked.params?.['ref']);
    const target = typeof ref['name'] === 'string' ? this.toolOf(ref['name']) : undefined;
    if (target !== undefined)
      return target.upstream.request$({ ...asked, params: { ...asked.params, ref: { ...ref, name: target.name } } });
    return this.#owned$(asked, String(ref['uri']));
  }

  /** Of the server that listed it; of one that nobody listed, the first that knows it. */
  #owned$(asked: Forwarded, key: string): Observable<unknown> {
    const owner = this.#owners.get(key);
    if (owner !== undefined) return owner.request$(asked);
    const able = this.#withAbility('resources');
    let last: unknown = notFound(asked.method);
    const tried$ = able.map((upstream) =>
      upstream.request$(asked).pipe(
        tap(() => this.#owners.set(key, upstream)),
        catchError((error: unknown) => {
          last = error;
          return EMPTY;
        }),
      ),
    );
    return concat(...tried$).pipe(
      first(undefined, tried$),
      mergeMap((result) => (result === tried$ ? throwError(() => last) : of(result))),
    );
  }
}

const initialized = (answers: readonly (readonly [McpUpstream, Readonly<Record<string, unknown>>])[]): unknown => {
  const versions = answers.map(([, { protocolVersion }]) => String(protocolVersion)).toSorted();
  const said = answers.flatMap(([{ name }, { instructions }]) =>
    typeof instructions === 'string' && instructions !== '' ? [`# ${name}\n${instructions}`] : [],
  );
  return {
    // The oldest: what all of them speak.
    protocolVersion: versions[0],
    capabilities: answers.map(([, { capabilities }]) => capabilities).reduce(joined, {}),
    serverInfo: { name: 'spillway', version: VERSION },
    ...(said.length === 0 ? {} : { instructions: said.join('\n\n') }),
  };
};

/**
 * Several servers as one. Clients of the protocol of 2026-07-28 fall back to the one before it, in which servers differ
 * less.
 */
export function manyServers(
  upstreams: readonly McpUpstream[],
  note: (text: string) => void,
  runtime: Runtime,
): Backend {
  const many = new ManyServers(upstreams, note, runtime);
  return {
    upstreams,
    toolOf: (name) => many.toolOf(name),
    request$: (asked) => defer(() => from(many.request$(asked))),
    notify: (method, params) => many.notify(method, params),
    told: (upstream, said) => many.told(upstream, said),
    meant: (upstream, said) => many.meant(upstream, said),
  };
}
