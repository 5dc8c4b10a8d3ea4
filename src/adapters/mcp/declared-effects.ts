import type { Effects } from '../../contract/policy.ts';
import { read } from '../../errors/structure.ts';
import { readList, toolsOn } from './list.ts';
import { effectsOfHints, type McpHints } from '../../policy/mcp-hints.ts';

/** Tools whose hints are kept: a server can list names without end. */
const HINTS_MAX = 10_000;

/** The effects of the server's tools, as far as it declared them when the host listed the tools. */
export class DeclaredEffects {
  readonly #declared = new Map<string, Effects>();

  /** A tool that was never listed has said nothing of itself. */
  of(toolName: string): Effects {
    return this.#declared.get(toolName) ?? effectsOfHints(undefined);
  }

  /** Has a client list the tools anew: whether one of them still only reads. What cannot be listed has not changed. */
  async stillReads(client: object, toolName: string, signal: AbortSignal): Promise<boolean> {
    const noted = (tools: readonly unknown[]): false => {
      this.#note(tools);
      return false;
    };
    await readList(client, signal, noted).catch(() => undefined);
    return this.of(toolName) === 'read';
  }

  note(list: unknown): void {
    this.#note(toolsOn(list) ?? []);
  }

  #note(tools: readonly unknown[]): void {
    for (const tool of tools) {
      const name = read(tool, 'name');
      if (this.#declared.size >= HINTS_MAX) this.#declared.clear();
      const hints = read(tool, 'annotations') as McpHints | undefined;
      if (typeof name === 'string') this.#declared.set(name, effectsOfHints(hints));
    }
  }
}
