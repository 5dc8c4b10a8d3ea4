import type { Tool, ToolContext } from '../../contract/tool.ts';
import type { Effects, ToolPolicy } from '../../contract/policy.ts';
import { read } from '../../errors/structure.ts';
import { markedIfSilent } from '../../policy/mcp-hints.ts';
import type { McpToolLike } from './client.ts';
import { policyOfOwn, type OwnTools } from '../own-tools.ts';
import { mcpInput, type McpInput } from './input.ts';
import { MutatingNames } from './mutating-names.ts';

/** A tool that a server has and that cannot be called through the provider. */
export interface LeftOutTool {
  /** The tool's name at its server. */
  readonly toolName: string;
  /** Why it cannot be called, in a sentence. */
  readonly reason: string;
}

/** A tool whose input is checked by its server alone. */
export interface UncheckedTool {
  /** The tool's name at its server. */
  readonly toolName: string;
  /** Why its schema cannot be used here. */
  readonly reason: string;
}

/** A tool of the server as calls of it need it. */
export interface ListedTool {
  /** Its name at the server. */
  readonly name: string;
  readonly check: McpInput;
  /** Whether it is called again on the server's word alone that it only reads, and nobody else's. */
  readonly reads: boolean;
}

export type Execute = (tool: ListedTool, input: unknown, context: ToolContext) => Promise<unknown>;

const leftOutReason = (tool: McpToolLike, seen: ReadonlySet<string>): string | undefined => {
  if (seen.has(tool.name)) return 'the server lists this name more than once; the first one counts';
  return tool.execution?.taskSupport === 'required' ? 'it only runs as a task, which is not supported' : undefined;
};

/** A tool that was made of what a server listed. */
interface MadeTool {
  /** All that the server said of it, to see whether it says the same again. */
  readonly said: string;
  readonly tool: Tool;
}

const saidOf = (tool: McpToolLike, effects: Effects): string =>
  JSON.stringify([tool.name, tool.description, tool.inputSchema, tool.annotations, tool.execution, effects]);

/** The tools of a provider, as its server lists them now. */
export class McpToolList {
  /** A new list whenever one of its tools is another; a tool that stayed as it was is the same object. */
  tools: readonly Tool[] = [];
  leftOut: readonly LeftOutTool[] = [];
  readonly #provider: string;
  readonly #execute: Execute;
  readonly #show: ToolPolicy['show'];
  readonly #own: OwnTools;
  readonly #unchecked = new Map<Tool, UncheckedTool>();
  #made: readonly MadeTool[] = [];
  #names: ReadonlySet<string> = new Set();
  readonly #mutating = new MutatingNames();

  /**
   * @param show what a model is shown of the failures of all its tools
   * @param own what the host says of single tools
   */
  constructor(provider: string, execute: Execute, show?: ToolPolicy['show'], own: OwnTools = {}) {
    this.#show = show;
    this.#own = own;
    this.#provider = provider;
    this.#execute = execute;
  }

  get unchecked(): readonly UncheckedTool[] {
    return this.tools.flatMap((tool) => this.#unchecked.get(tool) ?? []);
  }

  /** @param name a tool's name at the server */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** @returns whether the tool of that name only reads, by what is known now */
  reads(name: string): boolean {
    const full = this.#nameOf({ name });
    return this.tools.some(({ name: each, policy }) => each === full && policy?.effects === 'read');
  }

  /** The names of all that the server lists. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  update(listed: readonly McpToolLike[]): void {
    const before = new Map(this.#made.map((made) => [made.said, made]));
    const seen = new Set<string>();
    const made: MadeTool[] = [];
    const leftOut: LeftOutTool[] = [];
    for (const tool of listed) {
      const reason = leftOutReason(tool, seen);
      seen.add(tool.name);
      this.#mutating.note(tool);
      const effects = this.#mutating.has(tool.name) ? 'mutating' : 'read';
      const said = saidOf(tool, effects);
      if (reason === undefined) made.push(before.get(said) ?? this.#make(tool, effects, said));
      else leftOut.push({ toolName: this.#nameOf(tool), reason });
    }
    const isSame = made.length === this.#made.length && made.every((each, place) => each === this.#made[place]);
    if (!isSame) this.tools = made.map(({ tool }) => tool);
    for (const tool of this.#unchecked.keys()) if (!this.tools.includes(tool)) this.#unchecked.delete(tool);
    this.#made = made;
    this.leftOut = leftOut;
    this.#names = seen;
  }

  #nameOf({ name }: Pick<McpToolLike, 'name'>): string {
    return `${this.#provider}.${name}`;
  }

  #make(listed: McpToolLike, effects: Effects, said: string): MadeTool {
    const name = this.#nameOf(listed);
    const check = mcpInput(listed, (reason) => this.#unchecked.set(tool, { toolName: name, reason }));
    const own = policyOfOwn(this.#own, listed.name);
    const run = this.#execute;
    const isHearsay = effects === 'read' && own?.effects === undefined && own?.enforcesKey !== true;
    const made: Tool = {
      name,
      input: check.schema,
      ...(listed.description === undefined ? {} : { description: listed.description }),
      ...(listed.inputSchema === undefined ? {} : { inputJsonSchema: listed.inputSchema }),
      policy: {
        effects,
        ...(this.#show === undefined ? {} : { show: this.#show }),
        ...own,
      },
      dependency: this.#provider,
      execute(input, context) {
        // A host that has given the tool a policy of its own knows better than its server.
        return run(
          { name: listed.name, check, reads: isHearsay && read(this, 'policy') === made.policy },
          input,
          context,
        );
      },
    };
    const tool = markedIfSilent(made, listed.annotations, own);
    if (check.refused !== undefined) this.#unchecked.set(tool, { toolName: name, reason: check.refused });
    return { said, tool };
  }
}
