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
 * Docker, Shopify, PyPI, Atlassian, PlanetScale, Pinecone, Cerebras, Grafana, Linear, Notion, Figma, Sentry, Supabase,
 * PostHog, Apify, DigitalOcean, Databricks, Jina, E2B, Firecrawl, Resend, Mailgun, Airtable, Telegram.
 */
const ISSUED = [
  String.raw`(?:[cpr]?sk[-_]|[pr]k[-_]|whsec_|xox[abeoprs][-.]|xapp-|` +
    String.raw`gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|wt|agent|soat)-|` +
    String.raw`GOCSPX-|nvapi-|ya29\.|hv[brs]\.|AIza|SG\.[\w-]{16,64}\.|pypi-Ag|` +
    String.raw`AT(?:ATT|BB|CTT)|pscale_|pcsk_)[\w-]{10}`,
  '(?:(?:gh[oprsu]|gsk|hf|npm|r8|shp[acps][ats]|(?:github|dckr)_pat|lsv2_[ps][kt]|gl(?:sa|c)|lin_(?:api|oauth)|ntn|' +
    'figd|sntry[su]|sb_secret|phx|apify_api)_|A[BCKRS][IO]A)[A-Za-z0-9]{12}',
  '(?:pplx|tvly(?:-dev)?|xai)-[A-Za-z0-9]{12}',
  '(?:do[opr]_v1_|sbp_|dapi|jina_|e2b_|fc-)[a-f0-9]{16}',
  String.raw`re_[A-Za-z0-9]{8}_[A-Za-z0-9]{12}|key-[a-z0-9]{32}|pat[A-Za-z0-9]{14}\.[a-f0-9]{9}|(?<=\d:)AA[\w-]{30}`,
].join('|');

/** Every text that any pattern below can match has one of these: most texts have none, and cost one look. */
const SUSPECT = new RegExp(
  String.raw`key|secret|token|pass|pwd|auth|cookie|cred|sess|sig|jwt|bearer|basic|connection|:\/\/|code=|eyj|---- ?begin|@|otp|\s--?[aupw]|hook|login|identified|${ISSUED}`,
  'i',
);

/** Whose keys are secrets: those of others find things. */
export const KEYS_OF: string =
  '(?:api|access|account|app|application|auth|client|consumer|deploy|encryption|functions|license|master|private|' +
  'secret|service|shared|signing|ssh|storage|subscription)';

/** Names whose values are secrets, wherever they stand in a longer name. `tokens` are counted, not kept. */
const NAME = `(?:${KEYS_OF}[-_. ]?key|secret|token(?!s(?![a-z])|iz)|passw(?:or[dt]|d)|passphrase|passcode|pwd|credential|sess(?:ion)?[-_. ]?id|connection[-_. ]?string|(?:(?<![a-z])|key|store)pass(?=\\W{1,12}(?!\\W|\\d{1,4}\\b)))[\\w-]{0,16}`;
/** A value in quotes, those of JSON inside JSON as well; one that the text ends in has no end. */
const QUOTED = `(?:\\\\{1,8}["'][^"'\\\\]*(?:\\\\{1,8}["'])?|"(?:\\\\[\\s\\S]|[^"\\\\])*"?|'(?:\\\\[\\s\\S]|[^'\\\\])*'?)`;
const LISTED = `\\[\\s{0,4}(?:${QUOTED}\\s{0,4},?\\s{0,4})+\\]?`;
/** What stands between a name and its value; of a block of YAML up to the line that it begins with. */
const ASSIGNED = `(?:\\\\{0,8}["']|%22)?[\\][)}]{0,2}\\s{0,4}(?::?=>?|:|%3[ad])(?:\\s?[|>]\\S?\\n)?`;
/** An object, as far as it holds no other. */
const HELD = `\\{[^{}]*\\}?`;

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

type Replace = string | ((match: string, ...groups: Array<string | undefined>) => string);
const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' };
/** How JSON and addresses escape characters, and then HTML, also several times over. */
const ESCAPES: ReadonlyArray<readonly [pattern: RegExp, meant: Exclude<Replace, string>]> = [
  [
    /\\{1,8}u([\da-f]{4})|%(?:25){0,4}([2-7][\da-f])|\\{1,8}(?=\/)/gi,
    (_, json, url = json) => (url === undefined ? '' : String.fromCodePoint(Number.parseInt(url, 16))),
  ],
  // A zero before a number changes nothing, before `x27` it makes a number of it.
  [
    /&(?:amp;){0,4}(?:#(\d{2,4}|x[\da-f]{2,4})|(\w{2,4}));/gi,
    (match, code, name = '') => (code ? String.fromCodePoint(Number(`0${code}`)) : (ENTITIES[name] ?? match)),
  ],
];
const keepingFirst = `$1${REDACTED}`;

/**
 * In the order in which they are asked. Each is linear: what repeats cannot match what follows it, or is bounded, and
 * what was matched is behind.
 */
const RULES: ReadonlyArray<readonly [pattern: RegExp, replace: Replace]> = [
  [/----[- ]BEGIN [A-Z0-9 ]{0,40}----[\s\S]*?(?:----[- ]END [A-Z0-9 ]{0,40}-----?|$)/gi, REDACTED],
  // A password may hold an `@`, or a `/` that should not be there; a port is none.
  [
    /\b([a-z][a-z0-9+.-]{1,30}:\/\/)(?:[^\s:@/"'<>]{1,256}:(?!\d{1,5}(?:[/?#]|$))(?:[^\s/"'<>]{1,512}|[^\s@"'<>]{1,512})@|[^\s/?#"'<>]{1,2048}@)/gi,
    `${keepingFirst}@`,
  ],
  [new RegExp(`((?:authorization|cookie)2?${ASSIGNED}\\s{0,4})(?:${LISTED}|${QUOTED}|[^\\r\\n]+)`, 'gi'), keepingFirst],
  [
    /((?:[?&#;]|\b(?=otp|sess))(?:sig(?:nature)?|auth|otp|code|key|jwt|session|x-amz-[\w-]{1,32}|x-goog-[\w-]{1,32}|awsaccesskeyid)=)[^&#\s"'<>]+/gi,
    keepingFirst,
  ],
  // Python says before a quote what is in it.
  [new RegExp(`(${NAMED})(?:${LISTED}|[bu]?${QUOTED}|${HELD})`, 'gi'), keepingFirst],
  [new RegExp(`(${NAME}${ASSIGNED})(${BARE})`, 'gi'), keepingFirst],
  [
    new RegExp(`(${NAMED})(${BARE})`, 'gi'),
    (match, name = '', value = '') => (isWord(value) && isSpoken(name) ? match : `${name}${REDACTED}`),
  ],
  [
    /\b(bearer[\s:="'[]{1,4}|basic\s{1,4})([\w\-.~+/]{8,}=*)/gi,
    (match, scheme = '', value = '') => (isWord(value) ? match : `${scheme}${REDACTED}`),
  ],
  [
    new RegExp(`(${NAME}\\W{1,4}(?:(?:is|was|of|provided|given|value|b)\\W{1,4}){0,2})([\\w\\-.~+/]{8,}=*)`, 'gi'),
    // A short one is in quotes.
    (match, name = '', value = '') =>
      looksRandom(value) && (value.length > 15 || /["'`]$/.test(name)) ? `${name}${REDACTED}` : match,
  ],
  // XML.
  [new RegExp(`(<[\\w:-]{0,32}${NAME}[^<>]{0,64}>)[^<]+`, 'gi'), keepingFirst],
  [/(?<![\w-])eyJ[\w-]{5,}\.[\w-]{2,}(?:\.[\w-]*){0,4}/g, REDACTED],
  // A login as commands are given it, and addresses that are secrets themselves: who knows one may write there.
  [
    new RegExp(
      String.raw`(\bcurl\b[^\n]{0,256}?\s--?(?:proxy-)?u(?:ser)?[\s="']{0,4}[^\s:"'/]{1,64}:|` +
        String.raw`\b(?:mysql[^\n]{0,256}?\s-p|sshpass(?:\s-\S{1,32}){0,4}?\s-p\s{0,4}|` +
        String.raw`redis-cli\b[^\n]{0,256}?\s-a\s{0,4})|` +
        String.raw`\/\/hooks\.[\w.-]{1,64}\/|webhook(?:s|b2)?\/(?=\S{0,128}?(?=[a-z_-]{0,64}\d)(?=[\d_-]{0,64}[a-z])[\w-]{16}))(?:${QUOTED}|[^\s"'<>]+)`,
      'gi',
    ),
    keepingFirst,
  ],
  // More commands, whose option may be a port in another one behind, and netrc.
  [
    new RegExp(
      String.raw`\b(mariadb[^\n]{0,256}?\s-p|valkey-cli\b[^\n]{0,256}?\s-a\s{0,4}|` +
        String.raw`(?:ldap[a-z]{3,8}\b[^\n;&|]{0,256}?\s-w|` +
        String.raw`(?:ipmitool|mongo[a-z]{0,8}|(?:docker|podman|helm|az)\s[^\n;&|]{0,32}?\blogin)\b` +
        String.raw`[^\n;&|]{0,256}?\s-p)\s{1,4}(?!-|\d{1,5}\b)|` +
        String.raw`(?:machine\s{1,9}\S{1,99}|default)\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9})` +
        String.raw`(?:${QUOTED}|[^\s"'<>]+)`,
      'gi',
    ),
    keepingFirst,
  ],
  // SQL; in small letters it may be a sentence.
  [
    /((?:identified(?:\s\w{1,32}){0,3}?\sby|password(?:\sfor\s[^=\n]{1,128}=)?)[\s(]{1,4}["'])([^"']{1,256})/gi,
    (match, name = '', value = '') => (looksRandom(value) || /BY|PASS/.test(name) ? name + REDACTED : match),
  ],
  // Redis, whose answers have words there.
  [
    new RegExp(
      String.raw`(\bAUTH["'\s]{1,4}(?:[\w.@-]{1,64}["'\s]{1,4})?)` +
        String.raw`(?=\S{0,64}?\d)(?=\S{0,64}?[a-z])(?!\S{0,64}?(?:[Aa]uth|oken|sha|md5))[^\s"']{6,}`,
      'g',
    ),
    keepingFirst,
  ],
  // A field of a form.
  [
    new RegExp(
      String.raw`(\bname=\W{1,9}[\w-]{0,32}?${NAME}[\s\S]{0,256}?(?:\r?\n|\\{1,8}r\\{1,8}n){2})` +
        String.raw`.+?(?=\\{1,8}r\\{1,8}n|$)`,
      'gim',
    ),
    keepingFirst,
  ],
  // A login before a host that no scheme goes before, and no mail address: that has no port, and seldom a digit.
  [
    new RegExp(
      String.raw`(?<![\w.+%-])(?!\w*mail|(?:sips?|acct|to|b?cc|from|by):)([a-z][\w.+%-]{0,63}:)([^\s:@/"'<>]{1,128})` +
        String.raw`(?=@(?!sha)(?:tcp\(|localhost\b|(?:\d{1,3}\.){3}\d|[\w.-]{1,99}(?::\d|(\.[a-z]{2,24}\b))))`,
      'gi',
    ),
    (match, name = '', value = '', domain?: string) =>
      domain !== undefined && /^[a-z._-]+$/.test(value) ? match : name + REDACTED,
  ],
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

/** What matches values in each form that they may be written in; the longer one where one begins with another. */
export const literal = (secrets: readonly string[]): RegExp | undefined => {
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
export const withoutKnown = (text: string, known: RegExp): string => {
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

/** What a look for secrets leaves of a text: what hides one is shown without its escapes, anything else as it was. */
export const searched = (text: string, scrub: (text: string) => string): string =>
  ESCAPES.reduce((clean, [pattern, meant]) => {
    const plain = visible(clean.replaceAll(pattern, meant));
    const found = plain === clean ? clean : scrub(plain);
    return found === plain ? clean : found;
  }, scrub(text));

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
  const scrub = (text: string): string => {
    let clean = known === undefined ? text : withoutKnown(text, known);
    // `replace` has an overload for texts and one for functions, and none for what may be either.
    if (SUSPECT.test(clean)) for (const [pattern, replace] of RULES) clean = clean.replace(pattern, replace as string);
    return clean;
  };
  // Types, names and ids come again with each event, and matching them is the costly part.
  const safe = new Set<string>();
  return (text) => {
    if (text.length <= SAFE_LENGTH_MAX && safe.has(text)) return text;
    if (known === undefined && HEX.test(text)) return text;
    const seen = visible(text.length > READ_MAX ? text.slice(0, READ_MAX) : text);
    const scanned = seen.length > SCANNED_MAX ? seen.slice(0, SCANNED_MAX) : seen;
    const clean = searched(scanned, scrub);
    if (clean === text && text.length <= SAFE_LENGTH_MAX) {
      if (safe.size >= SAFE_MAX) safe.clear();
      safe.add(text);
    }
    if (text.length > READ_MAX) return `${clean.slice(0, Math.min(TEXT_MAX, Math.max(0, scanned.length - TEXT_MAX)))}…`;
    return seen.length > TEXT_MAX ? `${clean.slice(0, TEXT_MAX)}…` : clean;
  };
}
