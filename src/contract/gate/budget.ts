import * as z from 'zod';

/** What a budget counts. */
export type BudgetUnit = 'calls' | 'usd' | 'tokens';

/** Who has a budget of its own: each turn, each session of a tenant, or each tenant. */
export type BudgetPer = 'turn' | 'session' | 'tenant';

/** What was used, by unit; what is left out was not used. */
export interface Usage {
  /** US dollars, 0 or more. Default 0. */
  readonly usd?: number;
  /** Tokens of a model, 0 or more. Default 0. */
  readonly tokens?: number;
}

/** Amounts of every unit. */
export type Amounts = Readonly<Record<BudgetUnit, number>>;

/** What an attempt is taken to use until it has ended. JSON. */
export interface BudgetHold {
  /** Names the attempt. */
  readonly id: string;
  /** From then on it counts as used, by the store's clock: its process may have died. */
  readonly untilMs: number;
  /** What is reserved. */
  readonly amounts: Amounts;
}

/** A budget of one turn, session or tenant in the store. JSON. */
export interface BudgetRecord {
  /** The format. */
  readonly version: 1;
  /** When it began to count, by the store's clock. */
  readonly sinceMs: number;
  /** What is used. */
  readonly used: Amounts;
  /** What is reserved. */
  readonly holds: readonly BudgetHold[];
  /** Of which units it was told that 80 % are used. */
  readonly warned: readonly BudgetUnit[];
}

const amount = z.number().nonnegative().max(Number.MAX_VALUE);
const amounts: z.ZodType<Amounts> = z.strictObject({ calls: amount, usd: amount, tokens: amount });

/** For records that are read back from outside: on one that does not fit nothing is spent. */
export const budgetRecordSchema: z.ZodType<BudgetRecord> = z.strictObject({
  version: z.literal(1),
  sinceMs: amount,
  used: amounts,
  holds: z.array(z.strictObject({ id: z.string(), untilMs: amount, amounts })),
  warned: z.array(z.enum(['calls', 'usd', 'tokens'])),
});
