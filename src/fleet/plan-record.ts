import * as z from 'zod';
import type { FleetPlan, SubmitOptions } from '../contract/fleet/port.ts';
import { traceContextSchema } from '../contract/formats/call-request.ts';
import { approvalWhenSchema } from '../contract/gate/approval-schema.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import type { Plan, PlanNode, PlanOptions } from '../contract/turn.ts';
import { canonicalJson } from '../policy/key/canonical-json.ts';
import { sha256 } from '../policy/key/sha256.ts';
import { TURN_TIMEOUT_MS } from '../policy/profile.ts';
import { plan } from '../turn/plan.ts';
import { fromResults, isObject, referencesOf, templateOf } from './from-results.ts';

/**
 * The version of this format: a worker refuses a plan of another by its number. In format 1 it was not told apart what
 * was data and what referred to results.
 */
const PLAN_FORMAT = 2;
const NODES_MAX = 10_000;
const NODE_ID_MAX = 256;
const PLAN_MAX_CHARS = 4_000_000;

/** A plan that cannot be stored. Thrown before anything is. */
export class DurablePlanError extends Error {
  /** Always `DurablePlanError`. */
  override readonly name: string = 'DurablePlanError';
  /** The id of the node that is not data; absent where the plan as a whole is meant. */
  readonly node: string | undefined;
  constructor(message: string, node?: string) {
    super(message);
    this.node = node;
  }
}

/** A node as it is stored. */
interface StoredNode extends Omit<PlanNode, 'tool'> {
  readonly tool: string;
  /** Its input was made by `fromResults`. Any other is data, whatever it looks like. */
  readonly refers?: true;
}

/** A plan as it is stored, and whose turn it is: JSON. */
export interface PlanRecord extends SubmitOptions {
  readonly format: typeof PLAN_FORMAT;
  readonly nodes: ReadonlyArray<StoredNode>;
  readonly options: PlanOptions & { readonly timeoutMs: number };
}

const text = (max: number): z.ZodString => z.string().min(1).max(max);

const nodeSchema: z.ZodType<StoredNode> = z.strictObject({
  id: text(NODE_ID_MAX),
  tool: text(256),
  input: z.unknown().optional(),
  needs: z.array(text(NODE_ID_MAX)).exactOptional(),
  optional: z.boolean().exactOptional(),
  default: z.unknown().optional(),
  toolCallId: text(256).exactOptional(),
  idempotencyKey: text(512).exactOptional(),
  // A function is no data: the tool itself can have one.
  needsApproval: z.union([z.boolean(), approvalWhenSchema]).exactOptional(),
  compensate: z
    .union([z.literal(false), z.strictObject({ tool: text(256), input: z.unknown().optional() })])
    .exactOptional(),
  refers: z.literal(true).exactOptional(),
});

const recordSchema: z.ZodType<PlanRecord> = z.strictObject({
  format: z.literal(PLAN_FORMAT),
  nodes: z.array(nodeSchema).max(NODES_MAX),
  options: z.strictObject({
    timeoutMs: z.number().positive().max(Number.MAX_SAFE_INTEGER),
    onDeadline: z.enum(['detach', 'abort']).exactOptional(),
    concurrency: z.number().int().positive().exactOptional(),
    onFailure: z.enum(['keep', 'compensate']).exactOptional(),
    name: text(256).exactOptional(),
  }),
  session: text(512).exactOptional(),
  actor: text(512).exactOptional(),
  tenant: text(512).exactOptional(),
  traceContext: z.exactOptional(traceContextSchema),
});

/** As JSON, or why it is none. */
const dataOf = (value: unknown, id: string, what: string): unknown => {
  try {
    return JSON.parse(canonicalJson(value, { volatile: [], maxChars: PLAN_MAX_CHARS })) as unknown;
  } catch (error) {
    const why = isToolExecutionError(error) ? error.message : 'it is no JSON';
    throw new DurablePlanError(`Node ${id}: its ${what} cannot be stored: ${why}`, id);
  }
};

/** A node's own undoing, which must be data as well. */
const undoingOf = ({ id, compensate }: PlanNode): PlanNode['compensate'] => {
  if (typeof compensate === 'function')
    throw new DurablePlanError(
      `Node ${id}: its compensate is a function, which no other machine has; give its tool the compensate, ` +
        `or name a tool that undoes: { "tool": "cancel", "input": { "id": "\${output.id}" } }`,
      id,
    );
  if (typeof compensate !== 'object' || compensate.input === undefined) return compensate;
  return { ...compensate, input: dataOf(compensate.input, id, 'compensate.input') };
};

const recordOf = (node: PlanNode): unknown => {
  const { id, tool, input, needs = [], default: fallback, compensate: _, ...rest } = node;
  const compensate = undoingOf(node);
  if (id.length > NODE_ID_MAX)
    throw new DurablePlanError(`Node ${id.slice(0, 64)}...: an id is at most ${NODE_ID_MAX} characters long`, id);
  const found = templateOf(input);
  if (found === undefined)
    throw new DurablePlanError(
      `Node ${id}: its input is a function, which no other machine has; write it as data: fromResults({ ` +
        '"flight": { "$result": "flights", "path": "id" } })',
      id,
    );
  const template = found.template === undefined ? undefined : dataOf(found.template, id, 'input');
  const refers = typeof input === 'function';
  for (const need of refers ? referencesOf(template) : []) {
    if (!needs.includes(need))
      throw new DurablePlanError(`Node ${id}: its input refers to ${need}, which is not among its needs; add it`, id);
  }
  return {
    id,
    tool: typeof tool === 'string' ? tool : tool.name,
    ...(template === undefined ? {} : { input: template }),
    ...(refers ? { refers } : {}),
    ...(needs.length === 0 ? {} : { needs: [...needs] }),
    ...(fallback === undefined ? {} : { default: dataOf(fallback, id, 'default') }),
    ...(compensate === undefined ? {} : { compensate }),
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
  };
};

const checked = (candidate: unknown): PlanRecord => {
  const parsed = recordSchema.safeParse(candidate);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DurablePlanError(
    `The plan cannot be stored: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'it is malformed'}`,
  );
};

/**
 * A plan as data: tools by their names, inputs with their references.
 * @throws DurablePlanError that names the node and the remedy, for a closure, and for what is no JSON
 */
export function planRecord(
  { nodes, options }: FleetPlan,
  { session, actor, tenant, traceContext }: SubmitOptions = {},
): PlanRecord {
  return checked({
    format: PLAN_FORMAT,
    nodes: nodes.map(recordOf),
    options: { timeoutMs: TURN_TIMEOUT_MS, ...options },
    ...(session === undefined ? {} : { session }),
    ...(actor === undefined ? {} : { actor }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(traceContext === undefined ? {} : { traceContext }),
  });
}

/** By which it is known whether two plans are one: who asks again asks from another span. */
export const digestOf = ({ traceContext: _, ...record }: PlanRecord): string =>
  sha256(canonicalJson(record, { volatile: [], maxChars: PLAN_MAX_CHARS }));

/**
 * A stored plan, to be run.
 * @throws DurablePlanError for one of another format, PlanError for one that cannot run
 */
export function storedPlan(stored: string): { readonly plan: Plan; readonly identity: SubmitOptions } {
  const candidate: unknown = JSON.parse(stored);
  const format = isObject(candidate) ? candidate['format'] : undefined;
  if (format !== PLAN_FORMAT)
    throw new DurablePlanError(
      `The plan has format ${String(format)}, and this worker reads format ${PLAN_FORMAT}; run a worker of ` +
        'the version that took it',
    );
  const { nodes, options, session, actor, tenant, traceContext } = checked(candidate);
  const planned = nodes.map(({ input, refers, default: fallback, ...node }): PlanNode => {
    const filled = refers === true ? fromResults(input) : input;
    return {
      ...node,
      ...(filled === undefined ? {} : { input: filled }),
      ...(fallback === undefined ? {} : { default: fallback }),
    };
  });
  return {
    plan: plan.from(planned, options),
    identity: {
      ...(session === undefined ? {} : { session }),
      ...(actor === undefined ? {} : { actor }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(traceContext === undefined ? {} : { traceContext }),
    },
  };
}
