import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { ToolExecutionError } from '../../contract/tool-error.ts';

/** Gives all addresses of a host, as texts. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface TargetOptions {
  /** What may be reached though it is not public: `host`, `host:port` or a CIDR range such as `10.1.0.0/16`. */
  readonly allow?: readonly string[];
  /** How hosts are resolved. Default: the system's way. */
  readonly lookup?: Resolve;
}

/** Decides where requests may go. */
export interface TargetGuard {
  /**
   * Looks at what an address says by itself: scheme, user, and a host that is an address.
   * @throws ToolExecutionError `not_permitted`
   */
  check(url: URL): void;
  /**
   * Resolves hosts for `node:net`, and refuses one of whose addresses any is not permitted. The socket connects to what
   * was checked here, so a name that changes its mind between a check and a connection (DNS rebinding) gains nothing.
   */
  lookupFor(url: URL): LookupFunction;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

const WORDS: Readonly<Record<string, string>> = {
  unspecified: 'the unspecified address',
  loopback: 'a loopback address',
  linkLocal: 'a link-local address (clouds keep their metadata there)',
  private: 'a private address',
  uniqueLocal: 'a private address',
  carrierGradeNat: 'an address of a carrier’s own network',
  multicast: 'a multicast address',
  broadcast: 'the broadcast address',
};

/**
 * Platform services of a cloud on a public address: Azure's,
 * https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16.
 */
const METADATA: ReadonlySet<string> = new Set(['168.63.129.16']);

const v4Of = (high = 0, low = 0): ipaddr.IPv4 => new ipaddr.IPv4([high >> 8, high & 255, low >> 8, low & 255]);

/** NAT64's well-known prefix, RFC 6052. That for local use beside it is nobody's public address. */
const isNat64 = ({ parts: [p0, p1, ...rest] }: ipaddr.IPv6): boolean =>
  p0 === 0x64 && p1 === 0xff9b && rest.slice(0, 4).every((part) => part === 0);

/** IPv4 addresses that an IPv6 address stands for: whoever routes it may end there. */
const wrapped = (address: ipaddr.IPv6): ipaddr.IPv4[] => {
  const { parts } = address;
  const [p0 = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0, p6 = 0, p7 = 0] = parts;
  // 6to4, RFC 3056; Teredo, RFC 4380: its server, and its client with all bits turned.
  if (isNat64(address)) return [v4Of(p6, p7)];
  if (p0 === 0x2002) return [v4Of(p1, p2)];
  if (p0 === 0x2001 && p1 === 0) return [v4Of(p2, p3), v4Of(p6 ^ 0xffff, p7 ^ 0xffff)];
  // ISATAP, RFC 5214: the last half of an address of any network.
  return (p4 === 0 || p4 === 0x200) && p5 === 0x5efe ? [v4Of(p6, p7)] : [];
};

const rangeV4 = (address: ipaddr.IPv4): string | undefined => {
  const range = address.range();
  if (METADATA.has(address.toString())) return 'a cloud’s own service';
  return range === 'unicast' ? undefined : (WORDS[range] ?? 'a reserved address');
};

/** Why an address is not public, in words; `undefined` for one that is. */
const notPublic = (address: Address): string | undefined => {
  if (address instanceof ipaddr.IPv4) return rangeV4(address);
  const inside = wrapped(address);
  for (const inner of inside) {
    const range = rangeV4(inner);
    if (range !== undefined) return `${range} (${inner.toString()}) in an IPv6 one`;
  }
  const range = address.range();
  // Of IPv6 only 2000::/3 is given out as public, RFC 4291; beside it, what leads to a public IPv4 address.
  const leadsOut = range === '6to4' || range === 'teredo' || isNat64(address);
  const isPublic = leadsOut || (range === 'unicast' && (address.parts[0] ?? 0) >> 13 === 1);
  return isPublic ? undefined : (WORDS[range] ?? 'a reserved address');
};

/** An address of its text; IPv4 in IPv6's clothes (`::ffff:127.0.0.1`) is IPv4. */
const parse = (text: string): Address | undefined => (ipaddr.isValid(text) ? ipaddr.process(text) : undefined);

const bare = (hostname: string): string =>
  hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
const portOf = ({ port, protocol }: URL): string => (port === '' ? (protocol === 'https:' ? '443' : '80') : port);

interface Allowed {
  host(url: URL): boolean;
  address(address: Address): boolean;
}

const cannotRead = (entry: string): RangeError =>
  new RangeError(
    'allow must hold hosts (api.internal), hosts with a port (127.0.0.1:8080, [::1]:8080) or ranges (10.0.0.0/8), ' +
      `not ${JSON.stringify(String(entry).slice(0, 64))}`,
  );

const readAllow = (allow: readonly string[]): Allowed => {
  const ranges: [Address, number][] = [];
  const hosts = new Set<string>();
  for (const entry of allow) {
    if (typeof entry !== 'string') throw cannotRead(entry);
    if (ipaddr.isValidCIDR(entry)) {
      ranges.push(ipaddr.parseCIDR(entry));
      continue;
    }
    const plainV6 = ipaddr.IPv6.isValid(entry) ? `[${entry}]` : entry;
    const [, host, port] = /^([^/?#@\s:]+|\[[\da-fA-F:.]+\])(?::(\d{1,5}))?$/.exec(plainV6) ?? [];
    if (host === undefined || !URL.canParse(`http://${host}`) || Number(port ?? 0) > 65_535) throw cannotRead(entry);
    // Read as a request's own host is, so that 127.1 and 127.0.0.1 are one.
    hosts.add(`${bare(new URL(`http://${host}`).hostname)} ${port === undefined ? '*' : Number(port)}`);
  }
  return {
    host: (url) => ['*', portOf(url)].some((port) => hosts.has(`${bare(url.hostname)} ${port}`)),
    address: (address) =>
      ranges.some(
        ([network, bits]) => network.kind() === address.kind() && (address as ipaddr.IPv6).match(network, bits),
      ),
  };
};

const resolveBySystem: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) =>
      error === null ? resolve(addresses.map(({ address }) => address)) : reject(error),
    );
  });

const refused = (rule: string): ToolExecutionError => new ToolExecutionError('not_permitted', rule);

const familyOf = (address: Address): LookupAddress => ({
  address: address.toString(),
  family: address.kind() === 'ipv4' ? 4 : 6,
});

/**
 * A guard that lets requests go to public addresses only, and to what `allow` names.
 *
 * Refused are loopback, private, link-local (cloud metadata), carrier, multicast and reserved addresses, also inside
 * IPv6 ones (mapped, NAT64, 6to4, Teredo, ISATAP) and in every spelling that a URL takes (`2130706433`, `0x7f.1`),
 * schemes other than http and https, and URLs with a user.
 *
 * @throws RangeError for an entry of `allow` that cannot be read
 */
export function targetGuard({ allow = [], lookup = resolveBySystem }: TargetOptions = {}): TargetGuard {
  const allowed = readAllow(allow);

  const checkAddress = (address: Address, url: URL): void => {
    const why = notPublic(address);
    if (why === undefined || allowed.host(url) || allowed.address(address)) return;
    const text = address.toString();
    const name = bare(url.hostname);
    const [target, entry] = name === text ? [text, text] : [`${name} (${text})`, `${name} or ${text}`];
    const remedy = `add ${entry} to the option allow if it should be reached`;
    throw refused(`The target ${target} is ${why}, where requests are not sent; ${remedy}`);
  };

  const resolved = async (url: URL): Promise<LookupAddress[]> => {
    const name = bare(url.hostname);
    const texts = await lookup(name);
    const addresses = texts.map((text) => {
      const address = parse(text);
      if (address === undefined) throw refused(`The target ${name} was resolved to something that is no address`);
      checkAddress(address, url);
      return familyOf(address);
    });
    if (addresses.length === 0) throw Object.assign(new Error(`${name} has no address`), { code: 'ENOTFOUND' });
    return addresses;
  };

  return {
    check: (url) => {
      if (url.protocol !== 'http:' && url.protocol !== 'https:')
        throw refused(`Requests go to http: and https: only, not to ${url.protocol.slice(0, 32)}`);
      if (url.username !== '' || url.password !== '')
        throw refused('The target has a user or a password in its URL; send them in a header');
      const address = parse(bare(url.hostname));
      if (address !== undefined) checkAddress(address, url);
    },
    lookupFor:
      (url) =>
      (_hostname, { all }, callback) => {
        callbackify(resolved)(url, (error, addresses) => {
          const [first] = addresses ?? [];
          if (error !== null) callback(error, '', 4);
          else if (all === true) callback(null, addresses);
          else callback(null, first?.address ?? '', first?.family ?? 4);
        });
      },
  };
}
