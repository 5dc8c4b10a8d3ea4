import { canonicalJson, type CanonicalJsonOptions } from './canonical-json.ts';
import { checkOneOf } from '../check.ts';
import { sha256 } from './sha256.ts';

/** Which calls may share a key: those of one session, or all of one tenant. */
export type KeyScope = 'session' | 'global';

/** What a key is made of. What is absent equals no text at all: a missing tenant is not the tenant `undefined`. */
export interface CallKeyParts {
  /** Where the tool comes from, so that tools of the same name in two places are apart. */
  readonly namespace: string;
  /** The tool that is called. */
  readonly toolName: string;
  /** What is asked of the tool; `undefined` where it is given nothing. */
  readonly params: unknown;
  /** The session; left out with the scope `global`. */
  readonly sessionKey?: string | undefined;
  /** The user or service; part of computed keys only. */
  readonly actorId?: string | undefined;
  /** The tenant; part of every key. */
  readonly tenantId?: string | undefined;
  /** `global` leaves session and actor out. Only for tools that declare it and only read (R-9.3). Default `session`. */
  readonly scope?: KeyScope | undefined;
  /** The caller's own key, 1 to 512 characters. */
  readonly idempotencyKey?: string | undefined;
  /** The key a hook gave, 1 to 512 characters; the caller's goes first. */
  readonly hookKey?: string | undefined;
}

/** The key of a call, and what is stored and printed with it. */
export interface CallKey {
  /**
   * What the store is asked with: `sw1:` and 64 hex digits. `sw1` names the way it was made: keys of another way never
   * match.
   */
  readonly key: string;
  /** The caller's key, else the hook's, else the computed one. */
  readonly idempotencyKey: string;
  /** Who gave the key. */
  readonly source: 'caller' | 'hook' | 'computed';
  /** Which calls share the key. */
  readonly scope: KeyScope;
  /** 16 hex digits of the key, for logs and traces: enough to find it by, not enough to ask a store with. */
  readonly fingerprint: string;
  /** SHA-256 of the canonical params. Under one key, another digest is another call: a conflict (R-9.5). */
  readonly paramsDigest: string;
}

const VERSION = 'sw1';
/** As in the envelope. */
const KEY_MAX_CHARS = 512;
const FINGERPRINT_CHARS = 16;

const checkText = (name: string, value: unknown): void => {
  if (typeof value !== 'string')
    throw new RangeError(
      `${name} must be a string, not ${value === null ? 'null' : `a value of type ${typeof value}`}`,
    );
};
const checkOptionalText = (name: string, value: unknown): void => {
  if (value !== undefined) checkText(name, value);
};
const checkGivenKey = (name: string, value: string | undefined): void => {
  checkOptionalText(name, value);
  if (value === '' || (value !== undefined && value.length > KEY_MAX_CHARS))
    throw new RangeError(`${name} must be 1 to ${KEY_MAX_CHARS} characters long, not ${value.length}`);
};

/**
 * A caller's key as a resource is told it: the key itself, or, of a call with a tenant, a hash of both. Two tenants may
 * choose the same key, and a resource that both use must take neither for the other.
 */
export const scopedKey = (tenant: string | undefined, idempotencyKey: string): string =>
  tenant === undefined ? idempotencyKey : sha256(JSON.stringify([VERSION, tenant, idempotencyKey]));

/**
 * The idempotency key of a call (R-9.1): the caller's, else a hook's, else one computed from the params and the actor.
 * Each is scoped by tenant, namespace and tool, and by session unless the scope is `global`.
 *
 * Why JSON joins the parts: `a::b` and `c` must not become the key of `a` and `b::c`. Given and computed keys are
 * apart, so that nobody can name a computed one; a caller's and a hook's are together, so that a call that comes once
 * with each is still one call. Hashed, a key shows nothing of what it was made of.
 *
 * @param parts what identifies the call
 * @param options how the params are made canonical: a tool's own volatile fields and white space
 * @throws ToolExecutionError of kind `invalid_parameters` for params that are no JSON; see `canonicalJson`
 * @throws RangeError for a part that is no string, or a given key that is empty or over 512 characters
 *
 * @example const { key, paramsDigest } = callKey({ namespace: 'mail', toolName: 'send', params: { to: 'ada@example.com'
 * }, sessionKey: 's1', actorId: 'u1', tenantId: 't1' });
 */
export function callKey(parts: CallKeyParts, options?: CanonicalJsonOptions): CallKey {
  const {
    namespace,
    toolName,
    params,
    sessionKey,
    actorId,
    tenantId,
    scope = 'session',
    idempotencyKey,
    hookKey,
  } = parts;
  checkText('namespace', namespace);
  checkText('toolName', toolName);
  checkOptionalText('sessionKey', sessionKey);
  checkOptionalText('actorId', actorId);
  checkOptionalText('tenantId', tenantId);
  checkGivenKey('idempotencyKey', idempotencyKey);
  checkGivenKey('hookKey', hookKey);
  checkOneOf('scope', scope, ['session', 'global']);

  // No JSON text is empty, so nothing given is not `null`, `{}` or `""` given.
  const paramsDigest = sha256(params === undefined ? '' : canonicalJson(params, options));
  const given = idempotencyKey ?? hookKey;
  const session = scope === 'session' ? sessionKey : undefined;
  const actor = scope === 'session' && given === undefined ? actorId : undefined;
  // In a list JSON writes what is absent as null, and no text like that; and it escapes lone surrogates, all of which
  // UTF-8 would turn into one character.
  const digest = sha256(
    JSON.stringify([
      VERSION,
      given === undefined ? 'computed' : 'given',
      scope,
      tenantId,
      namespace,
      toolName,
      session,
      actor,
      given ?? paramsDigest,
    ]),
  );
  const key = `${VERSION}:${digest}`;
  return {
    key,
    idempotencyKey: given ?? key,
    source: idempotencyKey === undefined ? (hookKey === undefined ? 'computed' : 'hook') : 'caller',
    scope,
    fingerprint: digest.slice(0, FINGERPRINT_CHARS),
    paramsDigest,
  };
}
