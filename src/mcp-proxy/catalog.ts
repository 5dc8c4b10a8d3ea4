import type { ToolPolicy } from '../contract/policy.ts';
import type { Tool } from '../contract/tool.ts';
import { effectsOfHints } from '../policy/mcp-hints.ts';
import type { McpToolLike } from '../providers/mcp/client.ts';
import { mcpInput } from '../providers/mcp/input.ts';
import { isRecord } from './message.ts';

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

interface Made {
  readonly said: string;
  readonly tool: Tool;
}

/** A tool that no server listed has nothing that could run. */
const notHere = (): never => {
  throw new TypeError('a call brings what runs it');
};

/** The most tools of one server that are kept. */
const TOOLS_MAX = 10_000;

/**
 * The tools of one server, as the layer takes them: what a call of each is allowed, and what its input must be. All
 * sessions with the server share it, and so the breakers of its tools.
 */
export class Catalog {
  /** A new list whenever one of its tools is another. */
  tools: readonly Tool[] = [];
  readonly #options: CatalogOptions;
  readonly #unlisted: Tool;
  #made: ReadonlyMap<string, Made> = new Map();

  constructor(options: CatalogOptions) {
    this.#options = options;
    this.#unlisted = {
      name: options.nameOf('(unlisted)'),
      policy: { effects: 'mutating' },
      dependency: options.server,
      execute: notHere,
    };
  }

  has(name: string): boolean {
    return this.#made.has(name);
  }

  /**
   * The tool of that name. One that its server does not list is nothing that is known: it is mutating, and shares its
   * breaker with all others that nobody listed, so that no client fills the layer with names.
   */
  of(name: string): Tool {
    return this.#made.get(name)?.tool ?? this.#unlisted;
  }

  /** Takes what the server lists now. */
  update(listed: readonly McpToolLike[]): void {
    const made = new Map<string, Made>();
    for (const tool of listed.slice(0, TOOLS_MAX)) {
      if (typeof tool.name !== 'string' || made.has(tool.name)) continue;
      const said = JSON.stringify([tool.description, tool.inputSchema, tool.annotations]);
      const before = this.#made.get(tool.name);
      made.set(tool.name, before?.said === said ? before : { said, tool: this.#make(tool) });
    }
    this.#made = made;
    this.tools = [...made.values()].map(({ tool }) => tool);
  }

  #make(listed: McpToolLike): Tool {
    const { nameOf, policyOf, unusable, server } = this.#options;
    const { policy, checkInput } = policyOf(listed.name);
    const check = checkInput ? mcpInput(listed, (reason) => unusable(listed.name, reason)) : undefined;
    if (check?.refused !== undefined) unusable(listed.name, check.refused);
    return {
      name: nameOf(listed.name),
      ...(check === undefined ? {} : { input: check.schema }),
      ...(listed.description === undefined ? {} : { description: listed.description }),
      ...(listed.inputSchema === undefined ? {} : { inputJsonSchema: listed.inputSchema }),
      policy: { effects: effectsOfHints(listed.annotations), ...policy },
      dependency: server,
      execute: notHere,
    };
  }
}
