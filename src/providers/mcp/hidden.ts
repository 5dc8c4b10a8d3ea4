import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import type { McpHandlers } from './host/handlers.ts';
import type { LeftOutTool } from './tool-list.ts';

/** What a host could answer, the capability that says so, and the handler that would. */
const ABILITIES: ReadonlyArray<readonly [keyof McpHandlers, string, ClientCapabilities]> = [
  ['elicit', 'ask a person (elicitation)', { elicitation: { form: {}, url: {} } }],
  ['sample', 'ask a model (sampling)', { sampling: {} }],
  ['roots', 'say which folders it works in (roots)', { roots: { listChanged: true } }],
];

/**
 * The tools that a server keeps to itself since the host has no handler for what they need: found by asking it once
 * more for each handler that is missing, as a client that has it.
 *
 * @param listWith the names that the server lists to a client with these capabilities beside the host's own
 */
export async function hiddenTools(
  provider: string,
  handlers: McpHandlers,
  listWith: (more: ClientCapabilities) => Promise<readonly string[]>,
): Promise<readonly LeftOutTool[]> {
  const missing = ABILITIES.filter(([handler]) => handlers[handler] === undefined);
  if (missing.length === 0) return [];
  const shown = new Set(await listWith({}));
  const all = await listWith(Object.assign({}, ...missing.map(([, , capability]) => capability)) as ClientCapabilities);
  const hidden = all.filter((name) => !shown.has(name));
  const reasons = new Map<string, string>();
  for (const [handler, ability, capability] of hidden.length === 0 ? [] : missing)
    for (const name of await listWith(capability))
      if (hidden.includes(name) && !reasons.has(name))
        reasons.set(name, `the server lists it only to a host that can ${ability}; give handlers.${handler}`);
  const several = missing.map(([handler]) => `handlers.${handler}`).join(' and ');
  return hidden.map((name) => ({
    toolName: `${provider}.${name}`,
    reason: reasons.get(name) ?? `the server lists it only to a host that can do more; give ${several}`,
  }));
}
