import { listAllTools, type McpClientLike, type McpToolLike } from './client.ts';

/** A server's tools, as it gave them when it was asked. */
export interface Listed {
  readonly tools: readonly McpToolLike[];
  /** Which question it answers, counted from 1. */
  readonly order: number;
  /** How often the server had said by then that they are others. */
  readonly told: number;
}

/** What is known of a server's tools, beside what it said of their changes. */
export class Listings {
  readonly #listed: (tools: readonly McpToolLike[]) => void;
  #asked = 0;
  #told = 0;
  #taken: Pick<Listed, 'order' | 'told'> = { order: 0, told: 0 };
  #renewing: Promise<void> | undefined;

  /** @param listed told the tools, whenever they are known anew */
  constructor(listed: (tools: readonly McpToolLike[]) => void) {
    this.#listed = listed;
  }

  /** The server says that its tools are others. */
  changed(): void {
    this.#told++;
  }

  /**
   * Lists them by `relist` where the server said since that they are others; whoever comes meanwhile shares that. What
   * it says while it is asked is not waited for: it can say so whenever it is.
   */
  async renewed(relist: () => Promise<void>): Promise<void> {
    const told = this.#told;
    // One that was asked before may be on its way, and the next one is asked after.
    for (let round = 1; round <= 2 && this.#taken.told < told; round++)
      await (this.#renewing ??= relist().finally(() => (this.#renewing = undefined)));
  }

  async ask(client: McpClientLike): Promise<Listed> {
    const asked = { order: ++this.#asked, told: this.#told };
    return { tools: await listAllTools(client), ...asked };
  }

  /** Takes an answer, unless that to a later question has overtaken it: then it is out of date. */
  take(answer: Listed): void {
    if (answer.order < this.#taken.order) return;
    this.#taken = answer;
    this.#listed(answer.tools);
  }
}
