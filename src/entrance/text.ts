import type { Sense } from './sense.ts';

type Row = readonly [Sense, RegExp];

/** Who speaks: a model's provider never talks of film credits or gift certificates, a tool may. */
export type Speaker = 'llm' | 'tool';

/** One pattern of several, so that a table can be read. */
const any = (...patterns: readonly RegExp[]): RegExp => new RegExp(patterns.map(({ source }) => source).join('|'));

/** A quota counted by the minute, or one with a wait, fills again: it is a rate limit. */
const REFILLS = /\bper[ _-]?(?:second|minute|hour|min)\b|(?:retry|try again) (?:in|after) \d/;

const UNAUTHORIZED = any(
  /unauthori[sz]ed|not authori[sz]ed|unauthenticated|authentication|authenticate|access[ _]?denied|permission[ _]?denied|forbidden/,
  /(?:invalid|incorrect|missing|bad|wrong|expired|revoked)[ _](?:x-)?(?:api[ _-]?key|credential|(?:access |auth |bearer )?token|access key|password|username|subscription key|signature|jwt)/,
  /api[ _-]?key (?:is |was |has )?(?:been )?(?:not (?:valid|found)|invalid|missing|required|expired|disabled|revoked)|no api[ _-]?key/,
  /\b(?:token|session|jwt|credentials?|password|login)(?: (?:provided|included in the request))? (?:is |has |have |was )?(?:been )?(?:expired|revoked|invalid|malformed)|expired.?token/,
  /(?:log|sign) ?in (?:again|required|first|to continue)|login required|not logged in|do(?:es)?(?: not|n't) have (?:permission|access)|no permission|insufficient (?:permission|scope|privilege)/,
  /could not load credentials|unable to locate credentials|\bnoauth\b|\bwrongpass\b|\bnoperm\b|account (?:is |has been |was )?(?:suspended|deactivated|disabled|banned|locked)/,
);

const QUOTA = any(
  /insufficient[ _](?:quota|balance|credit|fund)|quota[ _]?exceeded|exceed(?:ed|s|ing)? (?:your |the |its )?(?:[a-z]{1,20} )?quota|quota (?:has been |is )?(?:exhausted|reached|depleted|used up)|out of quota/,
  /payment[ _]required|\bbilling\b(?! (?:service|server|api|address))|out of credits|(?:no|not enough|used all)(?: [a-z]{1,20})? credits|credit balance|credits? (?:exhausted|depleted)/,
  /(?:usage|spending|spend|monthly|daily) limit (?:has been |was )?(?:reached|exceeded|hit)|exceed(?:ed|s|ing)? (?:its |your |the )?(?:usage|spending|spend|monthly|daily) limit|subscription (?:has |is )?(?:expired|inactive|canceled)|card (?:was )?declined|\barrearage\b/,
);

const NAMES_OF_SETTINGS = 'time.?out|deadline|rate.?limit|network|quota|retry|retries|dns|tls|ssl';

/** What speaks of the input by the name of a fault: `timeout must be positive`, `Network "x" not found`. Asked before the faults. */
const ABOUT_INPUT = any(
  /no overload matches|overloaded (?:function|method|operator|constructor|signature)/,
  /validation (?:error|fail)|validation errors? for|failed validation|input should be|does not match (?:the )?schema/,
  /(?:invalid|unknown|unsupported|missing|unexpected|unrecogni[sz]ed|illegal)(?: required)? (?:value|option|argument|param|field|property|key|setting|flag|config)/,
  new RegExp(`(?:invalid|unknown|unsupported|missing|unexpected|unrecogni[sz]ed|illegal) ['"\`]?(?:${NAMES_OF_SETTINGS})`),
  new RegExp(`\\b(?:${NAMES_OF_SETTINGS})(?:[^\\n.:;]|\\.\\d){0,40} (?:must|should be|is required|is missing|is invalid|is not (?:a|an|valid|allowed|supported|defined)\\b|cannot be|has to be|out of range|too (?:long|large|small|short|big|high|low))`),
  /\b(?:network|dns|certificate|rate.?limit|timeout|tls|ssl|quota|queue|connection)s?\b(?! ?(?:lookup|resol|server|error|query|request|name|refused|reset|closed))(?:\.\w{1,5}\b)?[^\n.:]{0,40}(?:not found|does(?: not|n't) exist|already exists|is not defined)/,
);

const UNTRUSTED = any(
  /(?:ssl|tls|ca|server|client|signed|issuer|root|leaf|first|peer) certificate|certificate (?:has |is |was )?(?:expired|verif|signed|chain|problem|error|unknown|validation|authority|revoked|not )|certificate's/,
  /certificate_verify|x509:|self.signed|unable_to_verify|\bcert_|altname/,
);

const TIMED_OUT = /time.?out|timed.?out|deadline.?(?:exceeded|expired)|etimedout|econnaborted|took (?:too long|longer than)|(?:did(?: not|n't)|failed to) respond|no (?:response|answer|reply) (?:from [^\n]{1,40} )?(?:in|within|after)\b|(?:execution|running) time exceeded|time limit (?:was )?(?:exceeded|reached)/;

const UNREACHABLE = any(
  /econnrefused|\benotfound\b|eai_again|eai_fail|ehostunreach|enetunreach|getaddrinfo|gaierror|name resolution|name or service not known|no such host|(?:could not|cannot|failed to|unable to) resolve host|name_not_resolved|\bdns\b/,
  /connection[^\n]{0,60}refused|no route to host|unreachable|(?:could not|cannot|can't|unable to|failed to) (?:connect|establish)|all connection attempts failed|upstream connect error|^not connected\b/,
);

const LOST = any(
  /econnreset|epipe|broken pipe|connection[ _](?:was |is |has been )?(?:unexpectedly )?(?:reset|closed|lost|terminated|aborted|dropped|interrupted)|err_(?:connection|network|internet|http2)|socket (?:hang up|closed|disconnected|error)/,
  /other side closed|premature (?:close|end)|disconnected|remote end closed|server closed|closed (?:unexpectedly|the connection)|network|\btls\b|\bssl\b|unexpected eof|incomplete (?:json segment|read|message)|incompleteread/,
  /lost connection|gone away|(?:stream|channel) (?:was |has been )?(?:closed|disconnected|interrupted|reset)|websocket (?:closed|error|connection)|^(?:typeerror: )?terminated$|(?:request|stream|response) ended (?:without|before|prematurely)|load failed|connection.?error|connection to stripe/,
);

const UNAVAILABLE = any(
  /upstream|experiencing|at capacity|high demand|unexpected error|something went wrong|unavailable|try (?:again|later)|(?:please|you can) retry|temporar|bad gateway|internal.?(?:server )?error|internal fault|server.?error|server fault|server had an error|(?:server|service|system|api|currently) (?:is )?(?:currently )?not available/,
  /\bis busy\b|^busy\b|server busy|(?:is|are|be) locked|deadlock|starting up|is loading|^loading\b|too many (?:clients|connections|open files|sessions|concurrent)|(?:connections?|pool|sessions?) (?:limit|exhausted)|queue is full|maintenance|could not serialize|serialization failure|\bclusterdown\b|\bmasterdown\b|\btryagain\b|^-?readonly you|not ready/,
);

/** Asked last: what speaks of refusal and of nothing that passes. */
const REJECTED = any(
  /invalid|validation|malformed|\bbad\b|outside|not.?found|no.?such|does(?: not|n't) exist|already|unsupported|not supported|supported only|only [a-z ]{1,30} (?:are|is) (?:supported|allowed|accepted)|not.?implemented|unimplemented|schema|illegal/,
  /failed.?precondition|out.?of.?range|not.?(?:acceptable|allowed|permitted|accessible|recogni[sz]ed|eligible|enabled|defined|valid|available|unique|active|configured|installed|registered|verified|in[ _]|part of|a member)|must (?:be|have|not|match|contain|include|start|end|provide|specify)|\brequire[sd]?\b|\bmissing\b|\bexpected\b|\bdid(?: not|n't) match|does(?: not|n't) match/,
  /cannot be |please (?:provide|specify|enter|select|choose|supply|check|use)|\bover \d+ (?:[kmg]b|bytes|characters)\b|too.?(?:large|long|big|short|small|many|few)|\bexceeds\b|exceeded the|limit exceeded|maximum|minimum|\bdisabled\b|deprecated|un(?:known|recogni[sz]ed|processable|acceptable|parse?able) ?|\b(?:declined|denied|rejected|prohibited|blocked|forbids?|refused|violat(?:es|ed|ion|ions)|mismatch|conflict|conflicting|ambiguous|incompatible|incorrect)\b/,
  /duplicate|constraint (?:failed|violation)|(?:unique|foreignkey|notnull|check)violation|syntax error|wrong (?:number|type|kind|format|value)|cannot exceed|in the past\b|permanently (?:removed|deleted|moved|closed)|trial (?:has )?(?:ended|expired)|\bwrongtype\b|no module named|\bnot an? (?:valid|git|directory|number|member|file|list|string|integer|boolean|date)|is a directory|content (?:filter|policy|management)|flagged|context.?(?:length|window)|length limit/,
  /(?:can(?:not|'t)|could(?: not|n't)|unable to|failed to) (?:be )?(?:pars|find|found|locate|convert|cast|decod|deseriali|interpret|understand|validate)|\b(?:sold out|out of stock|fully booked|occupied|no longer|expired|gone|(?:been|is) taken|in use|unsafe|safety)\b|no [a-z ]{1,40} (?:available|found|match)|no (?:rows|results|matches|records)\b|read.only/,
  /\bzoderror\b|unknown scheme|redirect count|redirects|absolute urls|\b(?:enoent|eacces|eexist|eisdir|eperm|enotdir|einval)\b|\b(?:value|key|index|attribute|assertion|import|zerodivision|unicode[a-z]{0,10}|lookup|type|name)error: (?!fetch|terminated)(?!cannot read prop)/,
);

const RATE_LIMITED = /rate.?limit|too many requests|overload|throttl|slow.?down|rate exceeded|request rate|requests per|capacity exceeded|resource.?exhausted|concurrency limit/;

const CANCELED = any(
  /(?:request|operation|call|user) (?:was |has been )?(?:aborted|cancell?ed)|(?:aborted|cancell?ed) by (?:the )?(?:user|caller|client)|the user aborted|^(?:error: )?(?:aborted|cancell?ed)\.?$|aborterror|code = cancell?ed/,
);

/** Asked in this order, which is that of `LlmErrorKind`; the first that matches decides. Short words count only as words of their own. */
const ROWS: readonly Row[] = [
  ['unauthorized', UNAUTHORIZED],
  ['quota_exhausted', QUOTA],
  ['rejected', ABOUT_INPUT],
  ['rate_limited', RATE_LIMITED],
  ['untrusted', UNTRUSTED],
  ['timed_out', TIMED_OUT],
  ['canceled', CANCELED],
  ['unreachable', UNREACHABLE],
  ['lost', LOST],
  ['unavailable', UNAVAILABLE],
  ['rejected', REJECTED],
];

const LLM_ROWS: readonly Row[] = ROWS.flatMap(([sense, pattern]): readonly Row[] => {
  if (sense === 'quota_exhausted') return [[sense, any(pattern, /credits/)]];
  return sense === 'untrusted' ? [[sense, any(pattern, /certificate/)]] : [[sense, pattern]];
});

/** What a wrapper says whose cause says more. */
const WRAPPED = /^(?:typeerror: )?(?:fetch failed|failed to fetch)|exception typeerror: fetch failed/;

const senseOf = (text: string, rows: readonly Row[]): Sense | undefined => {
  const sense = rows.find(([, pattern]) => pattern.test(text))?.[0];
  return sense === 'quota_exhausted' && REFILLS.test(text) ? 'rate_limited' : sense;
};

/**
 * What a chain of messages says, outermost first; the first that says anything decides.
 *
 * @param texts in lower case
 */
export function senseOfText(texts: readonly string[], speaker: Speaker): Sense | undefined {
  const rows = speaker === 'llm' ? LLM_ROWS : ROWS;
  for (const text of texts) {
    // A code in a text, `not_in_channel`, says the same as its words.
    const sense = senseOf(text, rows) ?? (text.includes('_') ? senseOf(text.replaceAll('_', ' '), rows) : undefined);
    if (sense !== undefined && !(WRAPPED.test(text) && texts.length > 1)) return sense;
  }
  return texts.some((text) => WRAPPED.test(text)) ? 'lost' : undefined;
}

/** What a code or the name of a class says as words: `channel_not_found`, `ServiceUnavailableError`. */
export function senseOfWords(name: string, speaker: Speaker): Sense | undefined {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/[_\-./:]/g, ' ').toLowerCase();
  return senseOf(words, speaker === 'llm' ? LLM_ROWS : ROWS);
}

/** Why a request was refused, where its status says only that it was: never a reason to ask again. */
export function reasonOfRefusal(texts: readonly string[]): Sense | undefined {
  const text = texts.join('\n');
  if (QUOTA.test(text) && !REFILLS.test(text)) return 'quota_exhausted';
  return UNAUTHORIZED.test(text) ? 'unauthorized' : undefined;
}
