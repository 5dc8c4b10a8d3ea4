import { EMPTY, catchError, concat, defer, finalize, from, ignoreElements, switchMap, tap } from 'rxjs';
import type { Usage } from '../contract/gate/budget.ts';
import { LlmError } from '../contract/llm-error.ts';
import type { Budget, BudgetLeft, BudgetScope } from '../gate/budget.ts';
import { readUsage } from '../policy/gate/budget.ts';
import type { AgentModel, ModelUsage } from './model.ts';

/** Whose budget a model's answers are charged to, and at which price. */
export interface ChargeOptions extends BudgetScope {
  /** What an answer costs in US dollars. Default: only its tokens are counted. */
  readonly price?: (usage: ModelUsage) => number;
}

/** A price is the host's: one that throws, or is no amount, takes no token from what is counted. */
const costOf = (usage: ModelUsage, price: NonNullable<ChargeOptions['price']>): number | undefined => {
  try {
    return readUsage({ usd: price(usage) }).usd;
  } catch {
    return undefined;
  }
};

const tokensOf = ({ inputTokens, outputTokens }: ModelUsage): number =>
  [inputTokens, outputTokens]
    .map((count) => readUsage({ tokens: count }).tokens ?? 0)
    .reduce((all, count) => all + count);

const WORDS = { calls: 'calls', usd: 'US dollars', tokens: 'tokens' } as const;

/**
 * Why a model is not to be asked.
 * @param isUnpriced an answer cost nobody knows what
 */
const refusalOf = (left: readonly BudgetLeft[], isUnpriced: boolean): LlmError | undefined => {
  const spent = left.find((one) => one.unit !== 'calls' && one.left === 0);
  if (spent !== undefined) {
    const message = `The ${spent.per}'s budget is used up: 0 of ${spent.limit} ${WORDS[spent.unit]} left`;
    return new LlmError('quota_exceeded', message, { code: 'budget_spent' });
  }
  const dollars = isUnpriced ? left.find(({ unit }) => unit === 'usd') : undefined;
  if (dollars === undefined) return undefined;
  const why = '`price` gave no amount for an answer';
  const message = `The ${dollars.per}'s budget of ${dollars.limit} US dollars cannot be held: ${why}`;
  return new LlmError('quota_exceeded', message, { code: 'budget_unknown' });
};

/**
 * A model whose answers are charged to a budget: it is not asked once the tokens or the dollars are used up, and the
 * run ends as `failed`, `model_error`, with a sentence that says so. An answer's use is known after it, so the last one
 * may overdraw. Where dollars are limited it is not asked again after an answer of which `price` gave no amount. Calls
 * of tools are counted by the layer that has the same budget.
 *
 * @param model the model to ask
 * @param budget the budget that the layer was made with
 * @param options whose it is, and the price
 *
 * @example
 * const budget = createBudget({ tokens: 100_000, per: 'session' });
 * const model = chargedModel(scriptedModel([{ text: 'Hello' }]), budget, { session: 'ada' });
 */
export function chargedModel(model: AgentModel, budget: Budget, options: ChargeOptions = {}): AgentModel {
  const { price, ...scope } = options;
  let isUnpriced = false;
  const usageOf = (usage: ModelUsage): Usage => {
    const usd = price === undefined ? undefined : costOf(usage, price);
    isUnpriced ||= price !== undefined && usd === undefined;
    return { tokens: tokensOf(usage), ...(usd === undefined ? {} : { usd }) };
  };
  return (messages, tools, modelOptions) =>
    defer(() => {
      let used: ModelUsage | undefined;
      const charge = async (): Promise<void> => {
        const usage = used;
        used = undefined;
        if (usage !== undefined) await budget.charge(usageOf(usage), scope);
      };
      // The answer is there, and paid for: a store that is lost does not take it away.
      const charged$ = defer(() => from(charge())).pipe(
        catchError(() => EMPTY),
        ignoreElements(),
      );
      const answer$ = defer(() => model(messages, tools, modelOptions)).pipe(
        tap((event) => {
          if (event.type === 'usage') used = { ...used, ...event.usage };
        }),
      );
      return from(budget.left(scope)).pipe(
        switchMap((left) => {
          const refusal = refusalOf(left, isUnpriced);
          if (refusal !== undefined) throw refusal;
          return concat(answer$, charged$);
        }),
        // One that is broken off has used something, too.
        finalize(() => void charge().catch(() => undefined)),
      );
    });
}
