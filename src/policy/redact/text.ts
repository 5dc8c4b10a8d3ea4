import { visible } from './invisible.ts';

/** What stands in the place of a secret. */
export const REDACTED = '[redacted]';

/** The longest text that is kept; the rest is cut off. */
export const TEXT_MAX = 4096;
/** Looked at beyond the cut, so that a secret on the edge is seen whole. */
const SCANNED_MAX = 2 * TEXT_MAX;
/** How much of a text is read, before invisible characters are taken out. */
const READ_MAX = 4 * SCANNED_MAX;

/** Texts remembered to hold no secret, and how long they may be. */
const SAFE_MAX = 2000;
const SAFE_LENGTH_MAX = 128;

/**
 * How keys begin that say whose they are, as their issuers document: Slack, GitHub, GitLab, AWS, Google, npm, Hugging
 * Face, SendGrid, Stripe, OpenAI, Anthropic, Groq, xAI, Perplexity, Tavily, LangSmith, Nvidia, Replicate, Vault,
 * Docker, Shopify.
 */
const ISSUED = [
  String.raw`(?:[spr]k[-_]|whsec_|xox[abeoprs][-.]|glpat-|GOCSPX-|nvapi-|ya29\.|hvs\.|AIza|SG\.[\w-]{16,64}\.)[\w-]{10}`,
  '(?:(?:gh[oprsu]|gsk|hf|npm|r8|shp[acps][ats]|(?:github|dckr)_pat|lsv2_[ps][kt])_|A[KSR][IO]A)[A-Za-z0-9]{12}',
  '(?:pplx|tvly(?:-dev)?|xai)-[A-Za-z0-9]{12}',
].join('|');

/** Every text that any pattern below can match has one of these: most texts have none, and cost one look. */
const SUSPECT = new RegExp(
  String.raw`key|secret|token|pass|pwd|auth|cookie|cred|session|signature|jwt|bearer|basic|connection|:\/\/|[?&#](?:sig|code)=|eyj|-----begin|${ISSUED}`,
  'i',
);

/** Names whose values are secrets, wherever they stand in a longer name. `tokens` are counted, not kept. */
const NAME = `(?:(?:api|access|account|app|application|auth|client|consumer|deploy|encryption|functions|license|master|private|secret|service|shared|signing|ssh|storage|subscription)[-_. ]?key|secret|token(?!s(?![a-z])|iz)|passw(?:or)?d|passphrase|passcode|pwd|credential|session[-_. ]?id|connection[-_. ]?string|(?<![a-z])pass(?=\\W{1,12}(?!\\W|\\d{1,4}\\b)))[\\w-]{0,16}`;
/** A value in quotes, those of JSON inside JSON as well; one that the text ends in has no end. */
const QUOTED = `(?:\\\\{1,8}["'][^"'\\\\]*(?:\\\\{1,8}["'])?|"(?:\\\\[\\s\\S]|[^"\\\\])*"?|'(?:\\\\[\\s\\S]|[^'\\\\])*'?)`;
const LISTED = `\\[\\s{0,4}(?:${QUOTED}\\s{0,4},?\\s{0,4})+\\]?`;
const ASSIGNED = `(?:\\\\{0,8}["']|%22)?\\s{0,4}(?:=>?|:|%3[ad])`;

/** Without quotes: up to a space or the next parameter, or to a comma or semicolon that the next name follows. */
const BARE = `(?!\\[redacted\\])(?:(?!%26)[^\\s"'&,;<>]|[,;](?![\\s"']|$|[\\w-]{1,32}\\s?[=:]))+`;

/** An id, or a text of the same characters: none of the patterns fits these alone. */
const HEX = /^[\da-f-]{1,64}$/;

/** A name as JSON and settings give it a value, or a command line: `--password x`, and not `--password is missing`. */
const NAMED = `(?:${NAME}${ASSIGNED}\\s{0,4}|(?<!\\w)-[\\w-]{0,32}${NAME}\\s{1,4}(?!(?:or|to|is|and|was)\\b))`;

const looksRandom = (text: string): boolean => /\d/.test(text) && /[a-z]/i.test(text);
/** A word of a sentence, as in `Invalid token: expired`. */
const isWord = (text: string): boolean =>
  text.length < 16 && /^[a-z]+[.!?)\]]*$/i.test(text) && !/[a-z][A-Z]/.test(text);

const isSpoken = (name: string): boolean => /^(?:secret|token|credential|pass\W)/i.test(name);

type Replace = string | ((match: string, ...groups: string[]) => string);
const keepingFirst = `$1${REDACTED}`;

/**
 * In the order in which they are asked. Each is linear: what repeats cannot match what follows it, or is bounded, and
 * what was matched is behind.
 */
const RULES: ReadonlyArray<readonly [pattern: RegExp, replace: Replace]> = [
  [/-----BEGIN [A-Z0-9 ]{0,40}-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|$)/gi, REDACTED],
  // A password may hold an `@`, or a `/` that should not be there; a port is none.
  [
    /\b([a-z][a-z0-9+.-]{1,30}:\/\/)(?:[^\s:@/"'<>]{1,256}:(?!\d{1,5}(?:[/?#]|$))(?:[^\s/"'<>]{1,512}|[^\s@"'<>]{1,512})@|[^\s/?#"'<>]{1,2048}@)/gi,
    `${keepingFirst}@`,
  ],
  [new RegExp(`((?:authorization|cookie)2?${ASSIGNED}\\s{0,4})(?:${LISTED}|${QUOTED}|[^\\r\\n]+)`, 'gi'), keepingFirst],
  [
    /([?&#;](?:sig|signature|auth|code|key|jwt|session|x-amz-[\w-]{1,32}|x-goog-[\w-]{1,32}|awsaccesskeyid)=)[^&#\s"'<>]+/gi,
    keepingFirst,
  ],
  [new RegExp(`(${NAMED})(?:${LISTED}|${QUOTED})`, 'gi'), keepingFirst],
  [new RegExp(`(${NAME}${ASSIGNED})(${BARE})`, 'gi'), keepingFirst],
  [
    new RegExp(`(${NAMED})(${BARE})`, 'gi'),
    (match, name = '', value = '') => (isWord(value) && isSpoken(name) ? match : `${name}${REDACTED}`),
  ],
  [
    /\b((?:bearer|basic)\s{1,4})([\w\-.~+/]{8,}=*)/gi,
    (match, scheme = '', value = '') => (isWord(value) ? match : `${scheme}${REDACTED}`),
  ],
  [
    new RegExp(`(${NAME}\\W{1,3}(?:(?:is|was|of|provided|given|value)\\W{1,3}){0,2})([\\w\\-.~+/]{16,}=*)`, 'gi'),
    (match, name = '', value = '') => (looksRandom(value) ? `${name}${REDACTED}` : match),
  ],
  // XML.
  [new RegExp(`(<[\\w:-]{0,32}${NAME}[^<>]{0,64}>)[^<]+`, 'gi'), keepingFirst],
  [/(?<![\w-])eyJ[\w-]{5,}\.[\w-]{2,}(?:\.[\w-]*){0,4}/g, REDACTED],
  [new RegExp(`(?<![A-Za-z0-9])(?:${ISSUED})[\\w-]*`, 'g'), REDACTED],
];

/**
 * The texts that a value of 8-bit characters is in base64 within a longer one, which may begin at any of three places.
 */
const base64Forms = (secret: string): string[] => {
  const bytes = String.fromCodePoint(...new TextEncoder().encode(secret));
  const forms = [0, 2, 3].map((start, pad) =>
    btoa('\0'.repeat(pad) + bytes).slice(start, Math.floor(((pad + bytes.length) * 4) / 3)),
  );
  return forms
    .flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
    .filter((form) => form.length >= 8);
};

const formsOf = (secret: string): string[] => {
  const whole = secret.toWellFormed();
  const encoded = encodeURIComponent(whole);
  // JavaScript escapes more in a form than in an address.
  const form = String(new URLSearchParams({ '': whole })).slice(1);
  const escaped = [encoded, encoded.replaceAll('%20', '+'), form, form.replaceAll('+', '%20')];
  return [
    secret,
    ...escaped,
    ...escaped.map((each) => each.replaceAll(/%../g, (escape) => escape.toLowerCase())),
    JSON.stringify(secret).slice(1, -1),
    ...base64Forms(whole),
  ];
};

const literal = (secrets: readonly string[]): RegExp | undefined => {
  const forms = [...new Set(secrets.flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
  return forms.length === 0
    ? undefined
    : new RegExp(forms.map((form) => form.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)).join('|'), 'g');
};

/** What a token is made of, as far as it can be told without knowing whose it is. */
const TOKEN = /[\w.~%+-]/;

/**
 * Replaces each known value with the token that it stands in: of `ghp_<value><rest>` nothing may stay. Linear: it goes
 * on after each token.
 */
const withoutKnown = (text: string, known: RegExp): string => {
  let clean = '';
  let done = 0;
  const isToken = (at: number): boolean => TOKEN.test(text.charAt(at));
  for (const match of text.matchAll(known)) {
    let start = match.index;
    let end = start + match[0].length;
    // It stands in a token that is gone already.
    if (end <= done) continue;
    while (start > done && isToken(start - 1)) start--;
    while (end < text.length && isToken(end)) end++;
    if (start >= done) clean += text.slice(done, start) + REDACTED;
    done = end;
  }
  return done === 0 ? text : clean + text.slice(done);
};

/**
 * Makes a function that takes secrets out of a text: those given, also URL-encoded and in base64, with the token they
 * stand in, and what looks like one. Terminal sequences and invisible characters are taken out first: they would cut a
 * secret, and whoever takes them out later would put it together again. A text without any of these is given back as it
 * is. Linear in the first 32,768 characters, and cut after 4,096.
 *
 * @param secrets values that are always removed
 */
export function textRedactor(secrets: readonly string[] = []): (text: string) => string {
  const known = literal(secrets);
  // Types, names and ids come again with each event, and matching them is the costly part.
  const safe = new Set<string>();
  return (text) => {
    if (text.length <= SAFE_LENGTH_MAX && safe.has(text)) return text;
    if (known === undefined && HEX.test(text)) return text;
    const seen = visible(text.length > READ_MAX ? text.slice(0, READ_MAX) : text);
    const scanned = seen.length > SCANNED_MAX ? seen.slice(0, SCANNED_MAX) : seen;
    let clean = known === undefined ? scanned : withoutKnown(scanned, known);
    // `replace` has an overload for texts and one for functions, and none for what may be either.
    if (SUSPECT.test(clean)) for (const [pattern, replace] of RULES) clean = clean.replace(pattern, replace as string);
    if (clean === text && text.length <= SAFE_LENGTH_MAX) {
      if (safe.size >= SAFE_MAX) safe.clear();
      safe.add(text);
    }
    if (text.length > READ_MAX) return `${clean.slice(0, Math.min(TEXT_MAX, Math.max(0, scanned.length - TEXT_MAX)))}…`;
    return seen.length > TEXT_MAX ? `${clean.slice(0, TEXT_MAX)}…` : clean;
  };
}
