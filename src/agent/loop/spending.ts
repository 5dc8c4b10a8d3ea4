import type { AgentResult } from '../event.ts';
import { addUsage, type ModelUsage } from '../model.ts';
import type { AgentLimits } from './limits.ts';

/** What one answer costs, in US dollars. */
export type Price = (usage: ModelUsage) => number;

/** The function is the host's: whatever goes wrong in it is no amount, and ends no stream. */
const amountOf = (price: Price, usage: ModelUsage): number => {
  try {
    const amount: unknown = price(usage);
    return typeof amount === 'number' && amount >= 0 ? amount : Number.NaN;
  } catch {
    return Number.NaN;
  }
};

/** What the answers of a run have used, those that broke off included. */
export class Spending {
  readonly #price: Price | undefined;
  #usage: ModelUsage | undefined;
  #costUsd = 0;

  constructor(price: Price | undefined) {
    this.#price = price;
  }

  charge(usage: ModelUsage): void {
    if (Object.keys(usage).length === 0) return;
    this.#usage = addUsage(this.#usage ?? {}, usage);
    if (this.#price !== undefined) this.#costUsd += amountOf(this.#price, usage);
  }

  /** A price that is no amount counts as one that is too high: nobody knows what the run costs. */
  isOver({ tokens, usd }: Pick<AgentLimits, 'tokens' | 'usd'>): boolean {
    const { inputTokens = 0, outputTokens = 0 } = this.#usage ?? {};
    return inputTokens + outputTokens >= tokens || !(this.#costUsd < usd);
  }

  get report(): Pick<AgentResult, 'usage' | 'costUsd'> {
    return {
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#price === undefined || !Number.isFinite(this.#costUsd) ? {} : { costUsd: this.#costUsd }),
    };
  }
}
