import { read } from '../../errors/structure.ts';
import { readList, toolsOn } from './list.ts';

const nameOf = (tool: unknown): string => String(read(tool, 'name'));

/**
 * Whether the tools that policies name are there: what a server has is known once it was listed to its end, by whoever
 * uses the client, or by this before the first call. The first whole list decides.
 */
export class PolicyNames {
  readonly #check: (toolNames: readonly string[]) => void;
  #names: string[] = [];
  #decided: boolean;
  /** What was found to be wrong. */
  mistake: RangeError | undefined;

  /**
   * @param check throws a `RangeError` for a policy whose tool is not among the names
   * @param needed whether there is anything to check
   */
  constructor(check: (toolNames: readonly string[]) => void, needed: boolean) {
    this.#check = check;
    this.#decided = !needed;
  }

  /** Notes a page of the list. @throws RangeError once the list is whole and lacks a tool */
  addPage(cursor: unknown, page: unknown): void {
    const tools = toolsOn(page);
    if (tools === undefined || this.#decided) return;
    if (cursor === undefined) this.#names = [];
    this.#names.push(...tools.map(nameOf));
    if (read(page, 'nextCursor') === undefined) this.#decide(this.#names);
  }

  /** Lists the server's tools, unless they are known. @throws RangeError once the list is whole and lacks a tool */
  async ask(client: object, signal: AbortSignal): Promise<void> {
    if (this.mistake !== undefined) throw this.mistake;
    if (this.#decided) return;
    const names: string[] = [];
    const add = (tools: readonly unknown[]): boolean => {
      names.push(...tools.map(nameOf));
      return false;
    };
    // A server that cannot list says nothing about names.
    if (await readList(client, signal, add).catch(() => false)) this.#decide(names);
  }

  #decide(names: readonly string[]): void {
    if (this.#decided && this.mistake === undefined) return;
    this.#decided = true;
    try {
      this.#check(names);
    } catch (error) {
      if (error instanceof RangeError) this.mistake = error;
      throw error;
    }
  }
}
