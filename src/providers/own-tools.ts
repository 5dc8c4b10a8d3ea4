import type { ToolPolicy } from '../contract/policy.ts';
import { checkKeys } from '../policy/check.ts';

/** What the host says of one tool of a provider. */
export interface OwnTool {
  /** How its calls are guarded; goes before what its server or manifest says of it, and before the layer's defaults. */
  readonly policy?: ToolPolicy;
}

/** What the host says of single tools, by their names at their server. */
export type OwnTools = Readonly<Record<string, OwnTool>>;

const NAMES_SHOWN = 12;

/** @throws RangeError for what says nothing of a tool */
export function checkOwnTools(of: string, tools: OwnTools): void {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools))
    throw new RangeError(`${of}: tools must be an object such as { read_file: { policy: { timeoutMs: 5_000 } } }`);
  for (const [name, own] of Object.entries(tools)) checkKeys(`${of}: tools.${name}`, own, ['policy']);
}

/** @throws RangeError for a tool that is not there: what it says would be said to nobody */
export function checkOwnNames(of: string, tools: OwnTools, names: readonly string[]): void {
  const missing = Object.keys(tools).find((name) => !names.includes(name));
  if (missing === undefined) return;
  const shown = names.slice(0, NAMES_SHOWN).join(', ');
  const more = names.length > NAMES_SHOWN ? ' and others' : '';
  throw new RangeError(`${of}: tools names ${JSON.stringify(missing)}, which is not there; there is ${shown}${more}`);
}

/** What the host says of how a tool is guarded; nothing where it says nothing. */
export const policyOfOwn = (tools: OwnTools, name: string): ToolPolicy =>
  Object.hasOwn(tools, name) ? (tools[name]?.policy ?? {}) : {};
