import * as z from 'zod/mini';
import { PLACE } from '../settle/place.ts';
import type { ApprovalRecord, ApprovalWhen } from './approval.ts';

const COMPARISONS = ['above', 'below', 'equals', 'unless'] as const;

const described = <T extends z.ZodMiniType>(schema: T, description: string): T => schema.check(z.describe(description));

/** For rules that are data. */
export const approvalWhenSchema: z.ZodMiniType<ApprovalWhen> = z
  .strictObject({
    path: described(
      z.string().check(z.maxLength(1_024), z.regex(PLACE)),
      'A place in the input, such as usd or items[*].usd.',
    ),
    above: z.exactOptional(described(z.number(), 'Needed where the number there is greater.')),
    below: z.exactOptional(described(z.number(), 'Needed where the number there is less.')),
    equals: z.exactOptional(described(z.unknown(), 'Needed where this stands there.')),
    unless: z.exactOptional(described(z.unknown(), 'Needed where anything else stands there.')),
  })
  .check(
    z.refine((when) => COMPARISONS.filter((name) => name in when).length === 1, {
      error: `must have a path and one of ${COMPARISONS.join(', ')}`,
    }),
  );

const text = z.string();
const ms = z.number().check(z.nonnegative(), z.maximum(Number.MAX_SAFE_INTEGER));

/** For records that are read back from outside: what does not fit approves nothing. */
export const approvalRecordSchema: z.ZodMiniType<ApprovalRecord> = z.strictObject({
  version: z.literal(1),
  id: text,
  cause: z.enum(['needed', 'uncertain']),
  toolName: text,
  description: z.exactOptional(text),
  effects: z.enum(['read', 'mutating']),
  input: z.unknown(),
  callId: text,
  turnId: z.exactOptional(text),
  nodeId: z.exactOptional(text),
  session: z.exactOptional(text),
  actor: z.exactOptional(text),
  tenant: z.exactOptional(text),
  askedAtMs: ms,
  expiresAtMs: ms,
  state: z.enum(['pending', 'approved', 'denied', 'closed']),
  became: z.exactOptional(z.enum(['used', 'denied', 'withdrawn'])),
  by: z.exactOptional(text),
  reason: z.exactOptional(text),
});
