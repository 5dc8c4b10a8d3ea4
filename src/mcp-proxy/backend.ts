import type { Observable } from 'rxjs';
import type { Id, Params } from './message.ts';
import type { McpUpstream } from './upstream.ts';

/** A request of a client, on its way to a server. */
export interface Forwarded {
  readonly method: string;
  readonly params: Params | undefined;
  readonly askedAs: Id;
  readonly progress?: (params: Params) => void;
}

/** What stands behind a client: one server as it is, or several as one. */
export interface Backend {
  readonly upstreams: readonly McpUpstream[];
  /** Whose tool that is, and what it is called there; `undefined` for a name that is none of theirs. */
  toolOf(name: string): { readonly upstream: McpUpstream; readonly name: string } | undefined;
  /** Any other request: emits its result. */
  request$(forwarded: Forwarded): Observable<unknown>;
  notify(method: string, params: Params | undefined): void;
  /** What a server says of its own tasks, as the client is told it; and what the client says of one, for its server. */
  told(upstream: McpUpstream, said: unknown): unknown;
  meant(upstream: McpUpstream, said: unknown): unknown;
}

/** One server: nothing is added, and nothing is left out. */
export function oneServer(upstream: McpUpstream): Backend {
  return {
    upstreams: [upstream],
    toolOf: (name) => ({ upstream, name }),
    request$: (forwarded) => upstream.request$(forwarded),
    notify: (method, params) => upstream.notify(method, params),
    told: (_upstream, said) => said,
    meant: (_upstream, said) => said,
  };
}
