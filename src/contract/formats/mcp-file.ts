import * as z from 'zod';
import type { Classification } from '../error-kind.ts';
import type { ApprovalWhen } from '../gate/approval.ts';
import { budgetField, costField, needsApprovalField, type BudgetEntry } from './gate-entry.ts';
import type { Effects, ProfileName } from '../policy.ts';
import { toolName } from './plan-file.ts';
import {
  breakerField,
  classificationField,
  positiveMs,
  retryEntrySchema,
  type BreakerPolicyEntry,
  type RetryEntry,
} from './policy-entry.ts';
import { serverEntrySchema, serverName, type ServerEntry } from './server-entry.ts';

/** How the calls of a tool are guarded by `spillway mcp`. */
export interface GuardEntry {
  timeout_ms?: number;
  idle_timeout_ms?: number;
  retry_policy?: RetryEntry;
  circuit_breaker?: BreakerPolicyEntry | false;
  classification?: Record<string, Classification>;
  effects?: Effects;
  enforces_key?: boolean;
  safety_critical?: boolean;
  needs_approval?: boolean | ApprovalWhen;
  cost?: number;
  check_input?: boolean;
}

/** What `spillway mcp --config` reads. */
export interface McpFile {
  profile?: ProfileName;
  servers?: Record<string, ServerEntry>;
  defaults?: Omit<GuardEntry, 'check_input'>;
  tools?: Record<string, GuardEntry>;
  budget?: BudgetEntry[];
}

const policy = {
  timeout_ms: positiveMs.exactOptional().describe('Hard limit on one attempt. Default 55000.'),
  idle_timeout_ms: positiveMs
    .exactOptional()
    .describe('An attempt that makes no progress for this long times out. Off by default.'),
  retry_policy: retryEntrySchema.exactOptional(),
  circuit_breaker: breakerField,
  classification: classificationField,
  effects: z
    .enum(['read', 'mutating'])
    .exactOptional()
    .describe(
      'A mutating tool is not repeated when it may have taken effect. Default: what its server says, else mutating.',
    ),
  enforces_key: z
    .boolean()
    .exactOptional()
    .describe('The tool itself refuses to do a thing twice under one key; uncertain failures may then be retried.'),
  safety_critical: z
    .boolean()
    .exactOptional()
    .describe('Never repeat it when it may have taken effect, whatever else allows it.'),
  needs_approval: needsApprovalField,
  cost: costField,
} as const;

const guard: z.ZodType<GuardEntry> = z
  .strictObject({
    ...policy,
    check_input: z
      .boolean()
      .exactOptional()
      .describe('false: the look at the input is left to the server, for one that takes more than it lists.'),
  })
  .describe('How the calls of a tool are guarded.');

/** What a file for `spillway mcp` may hold. A key that is not here is refused. */
export const mcpFileSchema: z.ZodType<McpFile> = z
  .strictObject({
    profile: z
      .enum(['interactive', 'resilient'])
      .exactOptional()
      .describe('Where policies start from: quick, for a person who waits (default), or patient.'),
    servers: z
      .record(serverName(), serverEntrySchema)
      .exactOptional()
      .describe('The servers by name. The tools of several are called <server>.<tool>, of one by their own names.'),
    defaults: z.strictObject(policy).exactOptional().describe('What holds for every tool that says nothing else.'),
    tools: z
      .record(toolName(), guard)
      .exactOptional()
      .describe('Tools that differ, by the names under which clients see them.'),
    budget: budgetField,
  })
  .meta({ title: 'spillway mcp', description: 'Servers and policies for `spillway mcp`.' });
