import * as z from 'zod';
import type { Classification } from '../error-kind.ts';
import type { ApprovalWhen } from '../gate/approval.ts';
import { needsApprovalField } from './gate-entry.ts';
import {
  breakerField,
  classificationField,
  positiveMs,
  retryEntrySchema,
  type BreakerPolicyEntry,
  type RetryEntry,
} from './policy-entry.ts';
import { compensateEntrySchema, verifyEntrySchema, type CompensateEntry, type VerifyEntry } from './settle-entry.ts';
import type { Effects } from '../policy.ts';

/** The HTTP methods that a manifest may name. */
export type RestMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** How an answer becomes a tool's output. */
export interface RestResponseEntry {
  /** How the answer is read. Default: JSON where its content type says so or a part of it is asked for, else text. */
  as?: 'json' | 'text';
  /** The part of a JSON answer that is the output, as a JSON pointer or a dotted path. Default: all of it. */
  at?: string;
  /** The text in a JSON error answer that a model may read, as a JSON pointer or a dotted path. Default: none. */
  error_at?: string;
}

/** A tool of a REST manifest: one request, what fills it, and how its calls are guarded. */
export interface RestToolEntry {
  /**
   * The last part of the tool's name, which is `<name of the manifest>.<id>`. Letters, digits, `_`, `-`; at most 64.
   */
  id: string;
  /** What the tool does, for the model. */
  description?: string;
  /** The request's method. Default `GET`. */
  method?: RestMethod;
  /** Path and query behind `base_url`, an RFC 6570 template: `/users/{id}{?page}`. */
  url: string;
  /** Headers beside those of the manifest. `${name}` is a property of the input, `${env:NAME}` a variable. */
  headers?: Record<string, string>;
  /**
   * The body, with `${name}` for properties of the input; `false` for none. Default for POST, PUT and PATCH: an object
   * of all properties that url and headers do not use.
   */
  body?: unknown;
  /** How the body is written. Default `json`. */
  body_type?: 'json' | 'form';
  /**
   * JSON Schema of the input, 2020-12. Default: the names that url, headers and body use, those in the path required.
   */
  input?: Record<string, unknown>;
  /** How the answer becomes the output. */
  response?: RestResponseEntry;
  /** JSON Schema of the output. What does not fit it is a failure that is not retried. */
  response_schema?: Record<string, unknown>;
  /**
   * A header that carries the call's key, the same in every attempt. A server that honours it makes uncertain failures
   * retriable.
   */
  idempotency_header?: string;
  /** Hard limit on one attempt, in milliseconds. Default 30,000 (SI 4.1). */
  timeout_ms?: number;
  /** An attempt whose download makes no progress for so many milliseconds times out. Off by default. */
  idle_timeout_ms?: number;
  /** How often, and how patiently, a failed call is repeated. Default: the layer's profile. */
  retry_policy?: RetryEntry;
  /** When the tool is given a rest; `false` for never. Default: the layer's profile. */
  circuit_breaker?: BreakerPolicyEntry | false;
  /** A status, code or error kind and its class for this tool: `{ "503": "permanent" }`. */
  classification?: Record<string, Classification>;
  /** Tools to try in order, with the same input, when this one fails for good: ids of this manifest, or full names. */
  alternatives?: string[];
  /**
   * A `mutating` tool is not repeated when it may have taken effect. Default: `read` for GET and HEAD, else `mutating`.
   */
  effects?: Effects;
  /** Another tool that looks whether an uncertain call took effect. Default: an uncertain call stays so. */
  verify?: VerifyEntry;
  /** Another tool that undoes what its calls did; `false`: there is nothing to undo. Default: what was done stays. */
  compensate?: CompensateEntry | false;
  /** Forbids repeating it when it may have taken effect, whatever else allows it. Default false. */
  safety_critical?: boolean;
  /** A person has to approve each call, or those of which a comparison holds. Default: nobody has to. */
  needs_approval?: boolean | ApprovalWhen;
  /** What one call costs, in the host's own unit. Default 0. */
  cost?: number;
  /** `errors` shows a model the answer of a failed request, redacted, cut and marked. Default: none of it. */
  show?: 'errors';
}

/** The tools of one HTTP API. */
export interface RestManifest {
  /** The provider's name, the first part of its tools' names. Letters, digits, `_`, `-`; at most 64. */
  name: string;
  /** Where the API is, as `https://api.example.com/v1`: no user, query or fragment. */
  base_url: string;
  /** Sent with every request: `{ Authorization: 'Bearer ${env:TOKEN}' }`. At most 64. */
  headers?: Record<string, string>;
  /** The tools, 1 to 1,000. */
  tools: RestToolEntry[];
}

const TOOLS_MAX = 1_000;
const HEADERS_MAX = 64;

const name = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/, { error: 'must be made of letters, digits, _ and - only' });

const headerName: z.ZodString = z
  .string()
  .max(256)
  .regex(/^[!#$%&'*+.^`|~\w-]+$/, {
    error: 'must be the name of a header: letters, digits and - , without spaces or colons',
  });
const headers: z.ZodType<Record<string, string>> = z
  .record(headerName, z.string().max(8_192))
  .refine((entry) => Object.keys(entry).length <= HEADERS_MAX, { error: `must have at most ${HEADERS_MAX} entries` });

const jsonSchema: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown());

const part: z.ZodString = z
  .string()
  .max(1_024)
  .regex(/^(\/.*|[^/.]+(\.[^/.]+)*)?$/s, {
    error: 'must be a JSON pointer such as /data/items, or a dotted path such as data.items',
  });

const response: z.ZodType<RestResponseEntry> = z
  .strictObject({
    as: z
      .enum(['json', 'text'])
      .exactOptional()
      .describe(
        'How the answer is read. Default: JSON where its content type says so or a part of it is asked for, else text.',
      ),
    at: part
      .exactOptional()
      .describe(
        'The part of a JSON answer that is the output: a JSON pointer (/data/0/name) or a dotted path ' +
          '(data.0.name). Default: all of it.',
      ),
    error_at: part
      .exactOptional()
      .describe(
        'The text in the JSON body of an error answer that a model may read, so that it can correct its ' +
          'call: /error/message. Default: none; it may hold secrets.',
      ),
  })
  .describe('How an answer becomes the output.');

const tool: z.ZodType<RestToolEntry> = z.strictObject({
  id: name(64).describe('The tool is called <name of the manifest>.<id>.'),
  description: z.string().max(8_192).exactOptional().describe('What it does, for the model.'),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).exactOptional().describe('Default GET.'),
  url: z
    .string()
    .min(1)
    .max(4_096)
    .describe(
      'Path and query behind base_url, an RFC 6570 template: /users/{id}/posts{?page,tag*}. Values are ' +
        'percent-encoded.',
    ),
  headers: headers
    .exactOptional()
    .describe(
      'Beside those of the manifest. ${name} is a property of the input, ${env:NAME} a variable given to the ' +
        'provider, $${ a plain ${.',
    ),
  body: z
    .unknown()
    .exactOptional()
    .describe(
      'The body, with ${name} for properties of the input; false: none. Default for POST, PUT and PATCH: an ' +
        'object of all properties that url and headers do not use.',
    ),
  body_type: z.enum(['json', 'form']).exactOptional().describe('How the body is written. Default json.'),
  input: jsonSchema
    .exactOptional()
    .describe(
      'JSON Schema of the input, 2020-12. Default: the names that url, headers and body use, those in the ' +
        'path required.',
    ),
  response: response.exactOptional(),
  response_schema: jsonSchema
    .exactOptional()
    .describe('JSON Schema of the output. What does not fit it is a failure that is not retried.'),
  idempotency_header: headerName
    .exactOptional()
    .describe(
      'A header that carries the call’s key, the same in every attempt, for a server that refuses to do a ' +
        'thing twice. Uncertain failures may then be retried.',
    ),
  timeout_ms: positiveMs.exactOptional().describe('Hard limit on one attempt. Default 30000.'),
  idle_timeout_ms: positiveMs
    .exactOptional()
    .describe('An attempt whose download makes no progress for this long times out. Off by default.'),
  retry_policy: retryEntrySchema.exactOptional(),
  circuit_breaker: breakerField,
  classification: classificationField,
  alternatives: z
    .array(
      z
        .string()
        .max(256)
        .regex(/^[A-Za-z0-9_./:-]+$/, { error: 'must be made of letters, digits and _ - . / : only' }),
    )
    .max(16)
    .exactOptional()
    .describe(
      'Tools to try in order, with the same input, when this one fails for good: ids of this manifest, or ' +
        'full names with a dot.',
    ),
  verify: verifyEntrySchema.exactOptional(),
  compensate: compensateEntrySchema.exactOptional(),
  effects: z
    .enum(['read', 'mutating'])
    .exactOptional()
    .describe(
      'A mutating tool is not repeated when it may have taken effect. Default: read for GET and HEAD, else mutating.',
    ),
  safety_critical: z
    .boolean()
    .exactOptional()
    .describe('Never repeat it when it may have taken effect, whatever else allows it.'),
  needs_approval: needsApprovalField,
  cost: z.number().nonnegative().exactOptional().describe('What one call costs, in the host’s own unit. Default 0.'),
  show: z
    .literal('errors')
    .exactOptional()
    .describe(
      'errors: a model is shown the answer of a failed request, without secrets, cut, and marked as the ' +
        'tool’s. Default: none of it.',
    ),
});

/** What a REST manifest may hold. Keys are snake_case as in plan files; a key that is not here is refused. */
export const restManifestSchema: z.ZodType<RestManifest> = z
  .strictObject({
    name: name(64).describe('The provider’s name, the first part of its tools’ names.'),
    base_url: z
      .string()
      .min(1)
      .max(2_048)
      .describe('Where the API is: https://api.example.com/v1. No user, query or fragment.'),
    headers: headers.exactOptional().describe('Sent with every request: Authorization: Bearer ${env:TOKEN}.'),
    tools: z.array(tool).min(1).max(TOOLS_MAX),
  })
  .meta({ title: 'spillway REST manifest', description: 'The tools of one HTTP API, for `spillway/providers/rest`.' });
