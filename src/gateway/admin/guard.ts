import { hexOf, sha256 } from '../../policy/key/sha256.ts';
import { secretBytes } from '../../runtime.ts';
import { AdminRefused } from './refusal.ts';

/** Who may ask. */
export interface AdminGuardOptions {
  /**
   * What requests carry as `Authorization: Bearer <token>`: 16 to 512 visible ASCII characters. By default one of 256
   * bits is made.
   */
  readonly token?: string;
  /**
   * Host names, without a port, that requests may be addressed to beside the loopback ones. Others are refused: so does
   * DNS rebinding gain nothing.
   */
  readonly allowedHosts?: readonly string[];
  /** Origins (`https://ops.example`) whose pages may ask beside those of the server itself. */
  readonly allowedOrigins?: readonly string[];
}

export interface AdminGuard {
  readonly token: string;
  /**
   * @param inAddress a token that the request's address has, for a page that a person opens
   * @throws AdminRefused unless the request is addressed to us, comes from no strange page, and has the token
   */
  check(request: Request, inAddress?: string): void;
}

const TOKEN_BITS = 256;
const TOKEN = /^[!-~]{16,512}$/;
const HOST = /^([\w.-]{1,253}|\[[\da-fA-F:.]{2,45}\])(?::\d{1,5})?$/;

const isLoopbackName = (name: string): boolean =>
  name === 'localhost' || name === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(name);

/** The name in a Host header, lower-case; `undefined` for what is none. */
const nameIn = (host: string): string | undefined => HOST.exec(host)?.[1]?.toLowerCase();

const tokenOf = (given: string | undefined): string => {
  // Never of the `Runtime`: what can be replayed can be guessed.
  if (given === undefined) return hexOf(secretBytes(TOKEN_BITS / 8));
  if (typeof given !== 'string' || !TOKEN.test(given)) {
    const found =
      typeof given === 'string' ? `one of ${given.length} characters, or with others than those` : typeof given;
    throw new RangeError(
      `token must be 16 to 512 visible ASCII characters, not ${found}; leave it out and one is made`,
    );
  }
  return given;
};

const listOf = (
  option: string,
  list: readonly string[] | undefined,
  holds: (entry: string) => boolean,
  rule: string,
): readonly string[] => {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new RangeError(`${option} must be a list, not ${typeof list}`);
  for (const entry of list)
    if (typeof entry !== 'string' || !holds(entry))
      throw new RangeError(`${option} must hold ${rule}, not ${JSON.stringify(String(entry).slice(0, 64))}`);
  return list as readonly string[];
};

const isHostName = (entry: string): boolean => HOST.exec(entry)?.[1] === entry;
const isOrigin = (entry: string): boolean => URL.canParse(entry) && new URL(entry).origin === entry;

/** Whether two digests are one, in a time that says nothing of where they differ. */
const sameDigest = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
};

/** @throws RangeError for an option out of its range; a token is not shown */
export function createAdminGuard({ token: given, allowedHosts, allowedOrigins }: AdminGuardOptions): AdminGuard {
  const token = tokenOf(given);
  const digest = sha256(token);
  const hosts = new Set(
    listOf(
      'allowedHosts',
      allowedHosts,
      isHostName,
      'host names without a port (admin.internal, 10.0.0.5, [fd00::1])',
    ).map((name) => name.toLowerCase()),
  );
  const origins = new Set(listOf('allowedOrigins', allowedOrigins, isOrigin, 'origins (https://ops.example)'));
  const isOurs = (host: string): boolean => {
    const name = nameIn(host);
    return name !== undefined && (isLoopbackName(name) || hosts.has(name));
  };
  const isOwnPage = (origin: string, host: string): boolean => URL.canParse(origin) && new URL(origin).host === host;

  return {
    token,
    check: ({ url, headers }, inAddress = '') => {
      const { host: addressed } = new URL(url);
      const host = headers.get('host') ?? addressed;
      if (!isOurs(addressed) || !isOurs(host))
        throw new AdminRefused(
          'host',
          'the Host of the request is none of ours; ask by a loopback name, or name it in allowedHosts',
        );
      const origin = headers.get('origin');
      if (origin !== null && !origins.has(origin) && !isOwnPage(origin, host))
        throw new AdminRefused('origin', 'pages of this Origin may not ask; name it in allowedOrigins');
      const [, shown = inAddress] = /^Bearer +([!-~]+)$/i.exec(headers.get('authorization') ?? '') ?? [];
      // Digests, of one length whatever was shown.
      if (!sameDigest(sha256(shown), digest)) {
        throw new AdminRefused('token', 'the token is missing or wrong; send Authorization: Bearer <token>', {
          headers: { 'www-authenticate': 'Bearer realm="spillway"' },
        });
      }
    },
  };
}
