import type { ToolPolicy } from '../../contract/policy.ts';
import type { RestManifest, RestToolEntry } from '../../contract/formats/rest-manifest.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import { breakerSettings } from '../../policy/breaker/settings.ts';
import { breakerOf, retryOf, settlingOf } from '../../policy/entry.ts';
import { RETRY_PROFILES } from '../../policy/profile.ts';

/** Whether a request of this method may change something: RFC 9110, 9.2.1. */
export const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** How calls of a tool are guarded, as its entry says. */
export function policyOf(entry: RestToolEntry, { name }: RestManifest): ToolPolicy {
  const {
    method = 'GET',
    timeout_ms,
    idle_timeout_ms,
    retry_policy,
    circuit_breaker,
    classification,
    alternatives,
    effects,
    safety_critical,
    needs_approval,
    cost,
    show,
    idempotency_header,
  } = entry;
  return {
    effects: effects ?? (isSafe(method) ? 'read' : 'mutating'),
    ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
    ...(idle_timeout_ms === undefined ? {} : { idleTimeoutMs: idle_timeout_ms }),
    ...(retry_policy === undefined ? {} : { retry: retryOf(retry_policy) }),
    ...(circuit_breaker === undefined
      ? {}
      : { breaker: circuit_breaker === false ? false : breakerOf(circuit_breaker) }),
    ...(classification === undefined ? {} : { classification }),
    ...(alternatives === undefined
      ? {}
      : {
          alternatives: alternatives.map((alternative) =>
            alternative.includes('.') ? alternative : `${name}.${alternative}`,
          ),
        }),
    ...(safety_critical === undefined ? {} : { safetyCritical: safety_critical }),
    ...settlingOf(entry, (tool) => (tool.includes('.') ? tool : `${name}.${tool}`)),
    ...(needs_approval === undefined ? {} : { needsApproval: needs_approval }),
    ...(cost === undefined ? {} : { cost }),
    ...(show === undefined ? {} : { show }),
    ...(idempotency_header === undefined ? {} : { enforcesKey: true }),
  };
}

/** What options must be to each other, in the manifest's spelling. */
const ruleOf = (check: () => unknown, spelling: Readonly<Record<string, string>>): string | undefined => {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return error.message.replaceAll(
      /[a-z]+[A-Z]\w*/g,
      (word) => spelling[word] ?? word.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    );
  }
};

/**
 * What the schema cannot say of a tool's policy: options that contradict each other, alternatives that are not there.
 */
export function policyProblems(
  { retry_policy, circuit_breaker, alternatives = [], id }: RestToolEntry,
  at: Path,
  { tools, name }: RestManifest,
): Problem[] {
  const problems: Problem[] = [];
  const retry =
    retry_policy === undefined
      ? undefined
      : ruleOf(() => retryPolicy(retryOf(retry_policy), RETRY_PROFILES.interactive), {});
  if (retry !== undefined) problems.push({ message: retry, at: [...at, 'retry_policy'] });
  const breaker =
    circuit_breaker === undefined || circuit_breaker === false
      ? undefined
      : ruleOf(() => breakerSettings(breakerOf(circuit_breaker)), { cooldownMs: 'timeout_ms' });
  if (breaker !== undefined) problems.push({ message: breaker, at: [...at, 'circuit_breaker'] });
  alternatives.forEach((alternative, place) => {
    const own = alternative.startsWith(`${name}.`) ? alternative.slice(name.length + 1) : alternative;
    if (own === id)
      problems.push({
        message: `${id} cannot be its own alternative; name another tool`,
        at: [...at, 'alternatives', place],
      });
    else if (!own.includes('.') && !tools.some((tool) => tool.id === own))
      problems.push({
        message: `there is no tool ${own} in this manifest; name one of its ids, or a full name such as other.tool`,
        at: [...at, 'alternatives', place],
      });
  });
  return problems;
}
