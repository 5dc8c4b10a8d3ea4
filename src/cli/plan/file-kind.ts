import { mcpFileSchema } from '../../contract/formats/mcp-file.ts';
import { policyFileSchema } from '../../contract/formats/policy-file.ts';

/** The files that commands read: plans, REST manifests, those of `mcp`, and what `replay` and `simulate` take. */
export type FileKind = 'plan' | 'manifest' | 'proxy' | 'policy' | 'scenario';

/** Whether a text is a REST manifest: what tells one from a plan is its address. */
export function isManifest(text: string): boolean {
  return /^["']?base_url["']?\s*:/m.test(text) || /"base_url"\s*:/.test(text);
}

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * What kind a file is that is no manifest: its keys tell. Policies alone may be for `mcp` and for `replay` alike, and
 * are what they fit; what nothing tells is taken for a plan.
 */
export function kindOf(value: unknown): Exclude<FileKind, 'manifest'> {
  if (!isMapping(value) || 'turn' in value) return 'plan';
  if ('clients' in value || 'duration_s' in value) return 'scenario';
  if (!isMapping(value['tools']) && !('defaults' in value) && !('retry_budget' in value))
    return 'servers' in value && mcpFileSchema.safeParse(value).success ? 'proxy' : 'plan';
  if ('servers' in value || 'profile' in value || mcpFileSchema.safeParse(value).success) return 'proxy';
  return 'retry_budget' in value || policyFileSchema.safeParse(value).success ? 'policy' : 'proxy';
}
