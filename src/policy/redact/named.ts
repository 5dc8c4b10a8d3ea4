import { KEYS_OF, REDACTED } from './text.ts';
import { SECRET_LENGTH_MAX, redactorOf } from './values.ts';

type Values = Readonly<Record<string, string | undefined>>;

/** A shorter one would take half of every text along. */
const LENGTH_MIN = 6;
/** What a header's value begins with that is no secret itself. */
const SCHEME = /^(?:bearer|basic|token)\s+/i;
/** Names of a shell's that only look as if: the folder that it is in. */
const FOLDERS = /^(?:OLD)?PWD$/;

const { value: shown } = redactorOf();

/** How names of variables end that the redactor does not know: `GH_PAT`, `STRIPE_SK`, `DB_PW`. */
const ENDS_AS_SECRET = /key$|(?:^|[_-])(?:pat|sk|pw|jwt|dsn)\d?$/i;

/** Whether what a variable or a header is called says that its value is a secret. */
const isSecretName = (name: string): boolean =>
  !FOLDERS.test(name) &&
  (ENDS_AS_SECRET.test(name) || Object.values(shown({ [name]: '' }) as object).includes(REDACTED));

const bare = (value: string): string => value.replace(SCHEME, '').trim();

/** A value as it stands in an address, and as it is meant. */
const decoded = (written: string): readonly string[] => {
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
};

/** The passwords of addresses: `postgres://ann:p%40ss@db/shop`. */
const passwordsIn = (value: string): readonly string[] =>
  [...value.matchAll(/\b[a-z][\w+.-]{0,30}:\/\/[^\s/?#:]{0,256}:([^\s/?#]{1,512})@/gi)].flatMap(([, written = '']) =>
    decoded(written),
  );

/** One that is longer than a secret may be is known in parts of about the same length. */
const partsOf = (secret: string): readonly string[] => {
  const count = Math.ceil(secret.length / SECRET_LENGTH_MAX);
  const length = Math.ceil(secret.length / count);
  return Array.from({ length: count }, (_, part) => secret.slice(part * length, (part + 1) * length));
};

const usable = (found: readonly string[]): readonly string[] => [
  ...new Set(found.filter(({ length }) => length >= LENGTH_MIN).flatMap(partsOf)),
];

/** Of variables or headers, the values that are secrets by their names, and the passwords in addresses. */
export const secretsIn = (values: Values = {}): readonly string[] =>
  usable(
    Object.entries(values).flatMap(([name, value = '']) => [
      ...(isSecretName(name) ? [bare(value)] : []),
      ...passwordsIn(value),
    ]),
  );

/**
 * How options and parameters end whose values are secrets. What only begins so says something of one: `--token-type`,
 * `--key-file`, `--password-stdin`.
 */
const KEEPS = new RegExp(
  `(?:secret|passw(?:or[dt]|d)|passphrase|passcode|pwd|credentials?|authorization|cookie|.token|${KEYS_OF}key)\\d?$`,
);
/** These are as often followed by a word that is none: `--auth required`, `--key createdAt`. */
const MAY_KEEP = /(?:token|key|auth|bearer|jwt|otp|pat|sk|pw|pass|sig|signature|session)\d?$/;
/** A path, a file or a reference: where a secret is, and not what it is. */
const ELSEWHERE =
  /^(?:(?:~|\.{1,2}|[/\\][\w.@~-]+)[/\\][\w.@~/\\-]*$|(?:env|file):|\$[({A-Z_]|\w+:\/\/)|\.(?:json|pem|key|crt)$/;

/** No word: it has digits, or is long. */
const isRandom = (value: string): boolean =>
  /\d/.test(value) && /[a-z]/i.test(value) ? value.length >= 8 : value.length >= 20;

const isSecretOption = (name: string, value: string): boolean => {
  // Written as a variable, it is one.
  if (/^[A-Z\d_]+$/.test(name)) return isSecretName(name);
  const plain = name.toLowerCase().replaceAll(/[-_.]/g, '');
  if (ELSEWHERE.test(value)) return false;
  return KEEPS.test(plain) || (isRandom(value) && MAY_KEEP.test(plain));
};

const unquoted = (word: string): string => word.replaceAll(/["']/g, '');

const PAIR = /^\s*(?:-{0,2}|\/)["']?([\w.-]{1,64})["']?\s*[=:]\s*([\s\S]+)$/;
const DEPTH_MAX = 3;

/** `Cookie: sid=x; lang=en`: who reads them tells of each by itself. */
const cookiesIn = (name: string, value: string): readonly string[] =>
  /cookie$/i.test(name) ? value.split(/;\s*/).map((each) => each.replace(/^[^=]*=/, '')) : [];

/** What names give values inside one word: `--api-key=x`, `API_KEY=x`, `X-Api-Key: x`, `?token=x&n=1`. */
const pairsIn = (word: string, depth = 0): readonly string[] =>
  [...new Set([word, ...word.split(/[?&#]/), ...word.split(/[?&#;,{}\n]/)])].flatMap((part) => {
    const [, name = '', value = ''] = PAIR.exec(part) ?? [];
    const plain = bare(value.trim().replaceAll(/^["']|["']$/g, ''));
    const own = plain !== '' && isSecretOption(name, plain) ? [...decoded(plain), ...cookiesIn(name, plain)] : [];
    return name === '' || depth === DEPTH_MAX ? own : [...own, ...pairsIn(value, depth + 1)];
  });

/** The texts of a word that is JSON, each behind its name. */
const textsOf = (name: string, value: unknown): readonly string[] => {
  if (typeof value === 'string') return pairsIn(`${name}=${value}`);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, its]) => textsOf(Array.isArray(value) ? name : key, its));
};

const jsonIn = (word: string): readonly string[] => {
  try {
    return /^\s*[{[]/.test(word) ? textsOf('', JSON.parse(word)) : [];
  } catch {
    return [];
  }
};

/** `--user ann:x`: what a name and a colon go before, where it is no group. */
const loginIn = (option: string, value: string): readonly string[] =>
  /^(?:u|user|basic-?auth)$/i.test(option) ? [value.replace(/^[^:]*:?/, '')].filter(isRandom) : [];

/** What is given to the option before it. A key may begin with a hyphen, as no option does that is as random. */
const givenTo = (option: string, next: string): readonly string[] => {
  const given = bare(next);
  const isOption = next.startsWith('-') && !/^-(?!-)(?=\S*\d)(?=\S*[a-z])[\w-]{16,}$/i.test(next);
  if (option === '' || isOption) return [];
  return [...(isSecretOption(option, given) ? [given, ...cookiesIn(option, given)] : []), ...loginIn(option, given)];
};

/** The words of a line for a shell, `sh -c 'API_KEY=x run'`. */
const lineIn = (word: string): readonly string[] =>
  /\s/.test(word) ? (word.match(/(?:"[^"]*"|'[^']*'|[^\s"';&|])+/g) ?? []).map(unquoted) : [];

/** Of the words of a command line, or an address, the values that names beside them say are secrets. */
export const secretsInWords = (words: readonly string[] = []): readonly string[] => {
  const lines = words.map(lineIn).filter(({ length }) => length > 1);
  return usable(
    [words, ...lines].flatMap((line) =>
      line.flatMap((word, index) => {
        const [, option = ''] = /^--?([\w.-]{1,64})$/.exec(word) ?? [];
        const own = givenTo(option, line[index + 1] ?? '-');
        return [...own, ...pairsIn(word), ...jsonIn(word), ...passwordsIn(word)];
      }),
    ),
  );
};
