import * as z from 'zod';

/** A breaker, as far as it is shown. */
export interface ShownBreaker {
  readonly toolName: string;
  readonly scope: string;
  readonly state: {
    readonly type: string;
    readonly consecutiveFailures: number;
    readonly measured: number;
    readonly failures: number;
    readonly retryAfterMs?: number | undefined;
  };
}

/** What the admin page answers, as far as it is shown. */
export interface ShownAnswer {
  readonly mode?: string | undefined;
  readonly breakersObserve?: boolean | undefined;
  readonly tools?:
    | ReadonlyArray<{ readonly name: string; readonly mode: string; readonly breaker?: string | undefined }>
    | undefined;
  readonly breakers?: readonly ShownBreaker[] | undefined;
  readonly store?:
    | {
        readonly kind: string;
        readonly durability: string;
        readonly records?: number | undefined;
        readonly warnings: readonly string[];
      }
    | undefined;
  readonly retriesLeft?: number | undefined;
  readonly action?: string | undefined;
  readonly changed?: readonly ShownBreaker[] | undefined;
  readonly flushed?: number | undefined;
  readonly warnings?: readonly string[] | undefined;
  readonly error?: { readonly reason: string; readonly message: string } | undefined;
}

const breakers = z.array(
  z.object({
    toolName: z.string(),
    scope: z.string(),
    state: z.object({
      type: z.string(),
      consecutiveFailures: z.number(),
      measured: z.number(),
      failures: z.number(),
      retryAfterMs: z.number().optional(),
    }),
  }),
);

const answerSchema: z.ZodType<ShownAnswer> = z.object({
  mode: z.string().optional(),
  breakersObserve: z.boolean().optional(),
  tools: z.array(z.object({ name: z.string(), mode: z.string(), breaker: z.string().optional() })).optional(),
  breakers: breakers.optional(),
  store: z
    .object({ kind: z.string(), durability: z.string(), records: z.number().optional(), warnings: z.array(z.string()) })
    .optional(),
  retriesLeft: z.number().optional(),
  action: z.string().optional(),
  changed: breakers.optional(),
  flushed: z.number().optional(),
  warnings: z.array(z.string()).optional(),
  error: z.object({ reason: z.string(), message: z.string() }).optional(),
});

/** Reads an answer; `undefined` for one that no admin page gives. */
export function readAnswer(text: string): { readonly json: unknown; readonly answer: ShownAnswer } | undefined {
  try {
    const json: unknown = JSON.parse(text);
    const { data } = answerSchema.safeParse(json);
    return data === undefined ? undefined : { json, answer: data };
  } catch {
    return undefined;
  }
}
