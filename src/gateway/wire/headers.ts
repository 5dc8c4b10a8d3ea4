type Pair = readonly [name: string, value: string];

/** What can be asked for a header. */
export interface HeaderReader {
  /** Those of one name joined; `null` for none. `name` is in small letters. */
  get(name: string): string | null;
}

/** Headers that only pass: `Headers` would check and sort them anew at each step. */
export class HeaderList implements HeaderReader {
  /** Names in small letters. */
  readonly pairs: readonly Pair[];

  constructor(pairs: readonly Pair[]) {
    this.pairs = pairs;
  }

  static of(headers: Headers): HeaderList {
    return new HeaderList([...headers]);
  }

  /** From names and values in turn, as Node has them. */
  static ofRaw(raw: readonly string[]): HeaderList {
    const pairs: Pair[] = [];
    for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([String(raw[at]).toLowerCase(), String(raw[at + 1])]);
    return new HeaderList(pairs);
  }

  get(name: string): string | null {
    let found: string | null = null;
    for (const [key, value] of this.pairs) if (key === name) found = found === null ? value : `${found}, ${value}`;
    return found;
  }

  has(name: string): boolean {
    return this.pairs.some(([key]) => key === name);
  }

  without(...names: readonly string[]): HeaderList {
    return new HeaderList(this.pairs.filter(([key]) => !names.includes(key)));
  }

  /** In place of those that it has of that name. */
  with(name: string, value: string): HeaderList {
    return new HeaderList([...this.pairs.filter(([key]) => key !== name), [name, value]]);
  }

  toHeaders(): Headers {
    const headers = new Headers();
    for (const [name, value] of this.pairs) headers.append(name, value);
    return headers;
  }

  /** Names and values in turn, as Node takes them. */
  toRaw(): string[] {
    return this.pairs.flat();
  }
}

/** Headers that are about one connection, not about the request. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
];

/** And those that the connection itself lists. */
const hopByHop = (given: HeaderList): readonly string[] => {
  const listed = given.get('connection');
  return listed === null ? HOP_BY_HOP : [...HOP_BY_HOP, ...listed.split(',').map((name) => name.trim().toLowerCase())];
};

/**
 * The client's headers as the upstream gets them: all, but for those of the connection. What comes compressed would not
 * go on byte for byte.
 */
export const upstreamHeaders = (given: HeaderList): HeaderList =>
  given.without(...hopByHop(given), 'host', 'content-length').with('accept-encoding', 'identity');

/** The upstream's headers as the client gets them. */
export const clientHeaders = (given: HeaderList): HeaderList => given.without(...hopByHop(given));

/** The headers of a body that has been decoded on its way. */
export const decodedHeaders = (given: HeaderList): HeaderList => given.without('content-encoding', 'content-length');
