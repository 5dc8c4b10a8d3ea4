import { BehaviorSubject, catchError, defer, filter, of, take, type Observable } from 'rxjs';
import type { ToolPolicy } from '../contract/policy.ts';
import type { Tool } from '../contract/tool.ts';
import { effectsOfHints, markedIfSilent } from '../policy/mcp-hints.ts';
import type { McpToolLike } from '../providers/mcp/client.ts';
import { mcpInput } from '../providers/mcp/input.ts';
import { MutatingNames } from '../providers/mcp/mutating-names.ts';
import { METHODS, RpcError, isRecord, type Params } from './message.ts';
import type { Asked, Wire } from './wire.ts';

/** What the catalog of a server is made with. */
export interface CatalogOptions {
  readonly server: string;
  /** What a tool is called here: its own name, or one behind that of its server. */
  readonly nameOf: (tool: string) => string;
  /** What the host says of a tool; goes before what its server says. */
  readonly policyOf: (tool: string) => CatalogPolicy;
  /** Told once which tool has a schema that cannot be used here. */
  readonly unusable: (tool: string, reason: string) => void;
}

/** A tool's policy, and whether its input is looked at here. */
export interface CatalogPolicy {
  readonly policy: ToolPolicy;
  readonly checkInput: boolean;
}

/** The tools on a page of `tools/list`. */
export const pageOf = (result: unknown): { readonly tools: readonly McpToolLike[]; readonly nextCursor?: string } => {
  const { tools, nextCursor } = isRecord(result) ? result : {};
  return {
    tools: Array.isArray(tools) ? (tools.filter(isRecord) as unknown as readonly McpToolLike[]) : [],
    ...(typeof nextCursor === 'string' ? { nextCursor } : {}),
  };
};

/** Asks for a page of the tools; emits `undefined` where the server does not give it. */
export const pageAsked$ = (wire: Wire, envelope: Params, cursor: string | undefined): Observable<unknown> => {
  const given = { ...envelope, ...(cursor === undefined ? {} : { cursor }) };
  const params = Object.keys(given).length === 0 ? undefined : given;
  return wire.request$({ method: METHODS.list, params }).pipe(catchError(() => of(undefined)));
};

/** A client that lists the tools saves us the question. */
export const isWholeList = ({ method, params }: Asked, result: unknown): boolean =>
  method === METHODS.list && params?.['cursor'] === undefined && isRecord(result) && result['nextCursor'] === undefined;

interface Made {
  readonly said: string;
  readonly tool: Tool;
  /** The tool for whoever is told that it only reads, although another connection was told that it does not. */
  readonly mutating: Tool;
}

/** A tool that no server listed has nothing that could run. */
const notHere = (): never => {
  throw new TypeError('a call brings what runs it');
};

/** The most tools of one server that are kept. */
const TOOLS_MAX = 10_000;
/** The most names that clients may call without any server listing them: no client fills the layer with names. */
const UNLISTED_MAX = 1_000;

/**
 * The tools of one server, as the layer takes them: what a call of each is allowed, and what its input must be. All
 * connections with the server share their names, and so their breakers and keys. What each is told of them is its own.
 */
export class Catalog {
  /** A new list whenever one of its tools is another: what was listed last. */
  tools: readonly Tool[] = [];
  readonly #options: CatalogOptions;
  readonly #unlisted = new Map<string, Tool>();
  readonly #made = new Map<string, Made>();
  readonly #mutating = new MutatingNames();

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  /** What one connection is told. */
  listing(): Listing {
    return new Listing(this);
  }

  /** Takes what a connection lists; gives its tools by their names there. */
  take(listed: readonly McpToolLike[]): ReadonlyMap<string, Made> {
    const made = new Map<string, Made>();
    for (const tool of listed.slice(0, TOOLS_MAX)) {
      if (typeof tool.name !== 'string') continue;
      this.#mutating.note(tool);
      if (!made.has(tool.name)) made.set(tool.name, this.#madeOf(tool));
    }
    this.tools = [...made].map(([name, { tool, mutating }]) => (this.isMutating(name) ? mutating : tool));
    return made;
  }

  isMutating(name: string): boolean {
    return this.#mutating.has(name);
  }

  /**
   * A tool that its server does not list is nothing that is known: it is mutating, and its input is the server's to
   * check. `undefined` once there are too many of them.
   */
  unlisted(name: string): Tool | undefined {
    const known = this.#unlisted.get(name);
    if (known !== undefined || this.#unlisted.size >= UNLISTED_MAX) return known;
    const { nameOf, policyOf, server } = this.#options;
    const policy: ToolPolicy = { effects: 'mutating', ...policyOf(name).policy };
    const tool = { name: nameOf(name), policy, dependency: server, execute: notHere };
    this.#unlisted.set(name, tool);
    return tool;
  }

  #madeOf(listed: McpToolLike): Made {
    const said = JSON.stringify([listed.description, listed.inputSchema, listed.annotations]);
    const before = this.#made.get(listed.name);
    if (before?.said === said) return before;
    const tool = this.#make(listed);
    const made = { said, tool, mutating: { ...tool, policy: this.#policyOf(listed.name, 'mutating') } };
    if (before !== undefined || this.#made.size < TOOLS_MAX) this.#made.set(listed.name, made);
    return made;
  }

  #policyOf(name: string, effects: 'read' | 'mutating'): ToolPolicy {
    return { effects, ...this.#options.policyOf(name).policy };
  }

  #make(listed: McpToolLike): Tool {
    const { nameOf, policyOf, unusable, server } = this.#options;
    const check = policyOf(listed.name).checkInput
      ? mcpInput(listed, (reason) => unusable(listed.name, reason))
      : undefined;
    if (check?.refused !== undefined) unusable(listed.name, check.refused);
    const tool: Tool = {
      name: nameOf(listed.name),
      ...(check === undefined ? {} : { input: check.schema }),
      ...(listed.description === undefined ? {} : { description: listed.description }),
      ...(listed.inputSchema === undefined ? {} : { inputJsonSchema: listed.inputSchema }),
      policy: this.#policyOf(listed.name, effectsOfHints(listed.annotations)),
      dependency: server,
      execute: notHere,
    };
    return markedIfSilent(tool, listed.annotations, policyOf(listed.name).policy);
  }
}

/** The tools that one connection has been told of. */
export class Listing {
  readonly #catalog: Catalog;
  #made: ReadonlyMap<string, Made> = new Map();
  /** How often the server said that its tools are others. */
  #told = 0;
  /** How often it had when it was asked for what is known of them now. */
  readonly #known$ = new BehaviorSubject(0);
  /** The same of each tool of a list: the link hands it on, and knows nothing of this. */
  readonly #toldBefore = new WeakMap<McpToolLike, number>();
  /** The tools are others, and no list says which. */
  #isInDoubt = false;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  get told(): number {
    return this.#told;
  }

  has(name: string): boolean {
    return this.#made.has(name);
  }

  /**
   * The tool of that name, listed or not.
   * @throws RpcError once clients have called too many that nobody listed
   */
  of(name: string): Tool {
    const made = this.#made.get(name);
    if (made !== undefined) return this.#isInDoubt || this.#catalog.isMutating(name) ? made.mutating : made.tool;
    const tool = this.#catalog.unlisted(name);
    if (tool === undefined) throw new RpcError(-32_602, `The server lists no tool ${name.slice(0, 128)}`);
    return tool;
  }

  /** The server says that its tools are others: what is known is out of date until it has listed them again. */
  changed(): void {
    this.#told++;
  }

  /** Takes a page of a list that is being read. @param told what the server had told when it was asked for it */
  page(tools: readonly McpToolLike[], told: number): void {
    for (const tool of tools) this.#toldBefore.set(tool, told);
    if (tools.length === 0) this.missed(told);
  }

  /** Takes what the server lists now. */
  update(listed: readonly McpToolLike[], told?: number): void {
    const [first] = listed;
    this.#made = this.#catalog.take(listed);
    const at = told ?? (first && this.#toldBefore.get(first)) ?? this.#told;
    // A list that was asked for before the last change says nothing of that.
    if (at >= this.#known$.value) this.#isInDoubt = false;
    this.#know(at);
  }

  /** No list came: a tool that only read may be another one by now. */
  missed(told: number = this.#told): void {
    if (told > this.#known$.value) this.#isInDoubt = true;
    this.#know(told);
  }

  /** Emits once all that the server has told so far is known, or is missed. */
  current$(): Observable<unknown> {
    return defer(() => {
      const told = this.#told;
      return this.#known$.pipe(
        filter((known) => known >= told),
        take(1),
      );
    });
  }

  #know(told: number): void {
    if (told > this.#known$.value) this.#known$.next(told);
  }
}
