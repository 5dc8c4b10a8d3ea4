import { RecentMap, cleaned } from '../sink.ts';
import type { OtelAttributes } from './api.ts';
import type { MeteredTool } from '../prometheus/tool-meters.ts';

/** The values of `gen_ai.tool.type`: run by the client, an agent's own way to an outer API, or a search in data. */
export type ToolType = 'function' | 'extension' | 'datastore';

/** How a provider speaks to its MCP server now. */
export interface McpSessionFacts {
  /** The value of `network.transport`: `pipe` over stdio, `tcp` over HTTP. */
  readonly transport?: 'pipe' | 'tcp' | 'quic' | undefined;
  /** The id that the server gave the session, where it gave one. */
  readonly id?: string | undefined;
  /** The version of MCP that was agreed on, on spans as `mcp.protocol.version`. */
  readonly protocolVersion?: string | undefined;
}

/** Where tools come from, as the providers of this package are. */
export interface ToolSource {
  /** The tools as they are now; the list is read again for each call. */
  readonly tools: ReadonlyArray<{
    /** The name by which calls name the tool. */
    readonly name: string;
    /** Put on spans as `gen_ai.tool.description`. */
    readonly description?: string | undefined;
  }>;
  /** Present if the tools are an MCP server's. */
  readonly mcp?: McpSessionFacts | undefined;
}

const mcpAttributes = ({ transport, id, protocolVersion }: McpSessionFacts): OtelAttributes => ({
  'mcp.method.name': 'tools/call',
  ...(id === undefined ? {} : { 'mcp.session.id': id }),
  ...(protocolVersion === undefined ? {} : { 'mcp.protocol.version': protocolVersion }),
  ...(transport === undefined ? {} : { 'network.transport': transport }),
});

/** A source's tools by name, made anew when its list is another. */
class Shelf {
  readonly source: ToolSource;
  #tools: ToolSource['tools'] | undefined;
  #descriptions = new Map<string, string | undefined>();

  constructor(source: ToolSource) {
    this.source = source;
  }

  get descriptions(): ReadonlyMap<string, string | undefined> {
    const { tools } = this.source;
    if (tools !== this.#tools) this.#descriptions = new Map(tools.map(({ name, description }) => [name, description]));
    this.#tools = tools;
    return this.#descriptions;
  }
}

/** Descriptions that were looked at, which each call of their tool has on its span. */
const DESCRIPTIONS_MAX = 1_000;

/** What is known of tools beside their names. */
export class ToolFacts {
  readonly #tools: ReadonlyMap<string, MeteredTool>;
  readonly #shelves: readonly Shelf[];
  readonly #typeOf: (toolName: string) => ToolType;
  readonly #shown = new RecentMap<string>(DESCRIPTIONS_MAX);

  constructor(
    tools: ReadonlyMap<string, MeteredTool> = new Map(),
    sources: readonly ToolSource[] = [],
    typeOf: (toolName: string) => ToolType = () => 'function',
  ) {
    this.#tools = tools;
    this.#shelves = sources.map((source) => new Shelf(source));
    this.#typeOf = typeOf;
  }

  typeOf(toolName: string): ToolType {
    return this.#typeOf(toolName);
  }

  /** Servers describe their tools, and hosts what they wrap, without a thought of who reads it. */
  #described(description: string): string {
    const known = this.#shown.get(description);
    if (known !== undefined) return known;
    const shown = cleaned(description);
    this.#shown.set(description, shown);
    return shown;
  }

  /** As attributes of a span. */
  of(toolName: string): OtelAttributes {
    const shelf = this.#shelves.find(({ descriptions }) => descriptions.has(toolName));
    const description = this.#tools.get(toolName)?.description ?? shelf?.descriptions.get(toolName);
    return {
      'gen_ai.tool.type': this.typeOf(toolName),
      ...(description === undefined ? {} : { 'gen_ai.tool.description': this.#described(description) }),
      ...(shelf?.source.mcp === undefined ? {} : mcpAttributes(shelf.source.mcp)),
    };
  }
}
