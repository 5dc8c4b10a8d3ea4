import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Observable } from 'rxjs';
import { defer, finalize } from 'rxjs';
import type { ProfileName, ToolPolicy } from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeStore } from '../contract/store.ts';
import { textRedactor } from '../policy/redact/text.ts';
import type { Approvals } from '../gate/approvals.ts';
import type { Budget } from '../gate/budget.ts';
import { liveRuntime } from '../runtime.ts';
import { createSpillway, type Spillway } from '../spillway.ts';
import { oneServer } from './backend.ts';
import { Catalog, type CatalogPolicy } from './catalog.ts';
import { createGuard } from './guard.ts';
import { launchOf, type ServerPlace } from './launch.ts';
import { manyServers } from './many-servers.ts';
import { session$ } from './session.ts';
import { createUpstream, type McpUpstream } from './upstream.ts';

/** What a tool's policy may say beside the layer's own. */
export interface ProxiedToolPolicy extends ToolPolicy {
  /** `false` leaves the look at the input to the server. */
  readonly checkInput?: boolean;
}

/** A server that the proxy stands in front of. */
export interface ProxiedServer {
  readonly place: ServerPlace;
  /** How long it may take to start. Default 30,000. */
  readonly startTimeoutMs?: number;
  /** How its tools are guarded, by their names at the server. */
  readonly tools?: Readonly<Record<string, ProxiedToolPolicy>>;
}

export interface McpProxyOptions {
  /** One server is passed on as it is; several are one, whose tools are called `server.tool`. */
  readonly servers: Readonly<Record<string, ProxiedServer>>;
  readonly profile?: ProfileName;
  /** What holds for every tool that says nothing else. */
  readonly defaults?: ToolPolicy;
  readonly keyName?: string;
  readonly maxOutputBytes?: number;
  readonly store?: DedupeStore;
  /** Who approves the calls of tools that need it. */
  readonly approvals?: Approvals;
  readonly budget?: Budget;
  /** Values that are in no trace and no note, such as those that servers are given. Default: none. */
  readonly secrets?: readonly string[];
  readonly runtime?: Runtime;
  /** Told what happens to the servers, for a person: without secrets, though a server's own words may be in it. */
  readonly note?: (text: string) => void;
  /** Told each line that a server writes on stderr. */
  readonly heard?: (server: string, line: string) => void;
}

export interface McpProxy {
  /** The layer that all calls of tools run under: its trace, its breakers, its admin page. */
  readonly layer: Spillway;
  /**
   * Serves one client, or several that share a transport, with connections to the servers that are their own, until it
   * is gone or unsubscribed.
   */
  serve$(transport: Transport, inOrder: boolean, isShared?: boolean): Observable<never>;
  close(): Promise<void>;
}

/**
 * Clients of both SDKs give a request 60 s: the proxy is a little faster, so that they read what happened instead of
 * giving up on it.
 */
const TIMEOUT_MS = 55_000;
const START_TIMEOUT_MS = 30_000;
const OUTPUT_BYTES = 4 * 1024 * 1024;
/** The key of `_meta` that makes a call the same as one before. */
const IDEMPOTENCY_META_KEY = 'spillway/idempotencyKey';

const policyOf = (tools: ProxiedServer['tools'], name: string): CatalogPolicy => {
  const own: ProxiedToolPolicy | undefined =
    tools !== undefined && Object.hasOwn(tools, name) ? tools[name] : undefined;
  const { checkInput = true, ...policy } = own ?? {};
  return { policy, checkInput };
};

/** A server's tools, as the layer lists them for its admin page. */
const listedBy = (name: string, catalog: Catalog): ToolProvider => ({
  name,
  get tools() {
    return catalog.tools;
  },
  close: () => Promise.resolve(),
});

const catalogOf = (options: McpProxyOptions, server: string, isOne: boolean): Catalog =>
  new Catalog({
    server,
    nameOf: (tool) => (isOne ? tool : `${server}.${tool}`),
    policyOf: (tool) => policyOf(options.servers[server]?.tools, tool),
    unusable: (tool, why) => options.note?.(`${server}: the input of ${tool} is checked by its server alone: ${why}`),
  });

const layerOf = (
  { defaults = {}, profile, store, approvals, budget, secrets = [] }: McpProxyOptions,
  catalogs: ReadonlyMap<string, Catalog>,
  runtime: Runtime,
): Spillway =>
  createSpillway({
    providers: [...catalogs].map(([name, catalog]) => listedBy(name, catalog)),
    defaults: { timeoutMs: TIMEOUT_MS, ...defaults },
    redact: { secrets },
    runtime,
    ...(profile === undefined ? {} : { profile }),
    ...(store === undefined ? {} : { store }),
    ...(approvals === undefined ? {} : { approvals }),
    ...(budget === undefined ? {} : { budget }),
  });

/** The connections of one client to the servers. */
const upstreamsOf = (
  { servers, note = () => undefined, heard }: McpProxyOptions,
  catalogs: ReadonlyMap<string, Catalog>,
  runtime: Runtime,
): McpUpstream[] =>
  [...catalogs].flatMap(([name, catalog]) => {
    const { place, startTimeoutMs: connectTimeoutMs = START_TIMEOUT_MS } = servers[name] ?? {};
    if (place === undefined) return [];
    const launch = launchOf(place, runtime, heard === undefined ? undefined : (line) => heard(name, line));
    return [createUpstream({ name, launch, listing: catalog.listing(), connectTimeoutMs, runtime, note })];
  });

/**
 * A proxy in front of MCP servers: tool calls run under a layer, everything else passes unchanged in both directions.
 * Each client has connections of its own; breakers, keys and the trace are shared.
 */
export function createMcpProxy(given: McpProxyOptions): McpProxy {
  const { servers, runtime = liveRuntime, secrets } = given;
  const clean = textRedactor(secrets);
  const note = (text: string): void => given.note?.(clean(text));
  const options = { ...given, note };
  const { keyName = IDEMPOTENCY_META_KEY, maxOutputBytes = OUTPUT_BYTES } = options;
  const names = Object.keys(servers);
  const catalogs = new Map(names.map((name) => [name, catalogOf(options, name, names.length === 1)]));
  const layer = layerOf(options, catalogs, runtime);
  const guard = createGuard({ layer, keyName, maxOutputBytes });
  const open = new Set<McpUpstream>();
  const closeAll = async (upstreams: Iterable<McpUpstream>): Promise<void> => {
    const closing = [...upstreams];
    for (const upstream of closing) open.delete(upstream);
    await Promise.allSettled(closing.map((upstream) => upstream.close()));
  };
  return {
    layer,
    serve$: (transport, inOrder, isShared = false) =>
      defer(() => {
        const upstreams = upstreamsOf(options, catalogs, runtime);
        for (const upstream of upstreams) open.add(upstream);
        const [only] = upstreams;
        const backend =
          only !== undefined && upstreams.length === 1 ? oneServer(only) : manyServers(upstreams, note, runtime);
        return session$({ transport, backend, guard, inOrder, isShared, runtime }).pipe(
          finalize(() => void closeAll(upstreams)),
        );
      }),
    close: async () => {
      await layer.close();
      await closeAll(open);
    },
  };
}
