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

/** Tools that are named and not there, as far as the manifest can know, or are none for what they are named for. */
const namedProblems = (
  { id, alternatives = [], verify, compensate = false }: RestToolEntry,
  at: Path,
  manifest: RestManifest,
): Problem[] => {
  const { tools, name } = manifest;
  const problems: Problem[] = [];
  const check = (tool: string, path: Path, misused: (own: RestToolEntry) => string | undefined): void => {
    const ownId = tool.startsWith(`${name}.`) ? tool.slice(name.length + 1) : tool;
    const own = tools.find((one) => one.id === ownId);
    const absent = ownId.includes('.')
      ? undefined
      : `there is no tool ${ownId} in this manifest; name one of its ids, or a full name such as other.tool`;
    const message = own === undefined ? absent : misused(own);
    if (message !== undefined) problems.push({ message, at: [...at, ...path] });
  };
  alternatives.forEach((tool, place) =>
    check(tool, ['alternatives', place], (own) =>
      own.id === id ? `${id} cannot be its own alternative; name another tool` : undefined,
    ),
  );
  if (verify !== undefined)
    check(verify.tool, ['verify', 'tool'], (own) =>
      policyOf(own, manifest).effects === 'read'
        ? undefined
        : `${own.id} does not only read, and so cannot look; name a tool that does, or declare effects: read`,
    );
  if (compensate !== false) check(compensate.tool, ['compensate', 'tool'], () => undefined);
  return problems;
};

/**
 * What the schema cannot say of a tool's policy: options that contradict each other, named tools that are not there.
 */
export function policyProblems(entry: RestToolEntry, at: Path, manifest: RestManifest): Problem[] {
  const { retry_policy, circuit_breaker } = entry;
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
  return [...problems, ...namedProblems(entry, at, manifest)];
}
