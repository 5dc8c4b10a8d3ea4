import type { Sense } from './sense.ts';

/** What a text that matches says. */
export type Row = readonly [Sense, RegExp];

/** Who speaks: a model's provider never talks of film credits or gift certificates, a tool may. */
export type Speaker = 'llm' | 'tool';

/** One pattern of several, so that a table can be read. */
const any = (...patterns: readonly RegExp[]): RegExp => new RegExp(patterns.map(({ source }) => source).join('|'));

/** A quota counted by the minute, or one with a wait, fills again: it is a rate limit. */
export const REFILLS: RegExp = /\b(per|this|each)[ _-]?(second|minute|hour|min)\b|(retry|try again) (in|after) \d/;

export const UNAUTHORIZED: RegExp = any(
  // A service of authentication can fail like any other.
  /(un|not )authori[sz]ed|authenticat(ion|e)(?! (service|server|provider|backend|endpoint)s? )/,
  /(access|permission)[ _]?denied|permission.?error|forbidden|(no|not enough|insufficient) (permission|rights\b|scope|privilege)/,
  /do(es)?( not|n't) have (permission|access)|(log|sign) ?in (again|required|first|to continue)|not logged in/,
  /(invalid|incorrect|missing|bad|wrong|expired|revoked)[ _](x-)?(api[ _-]?key|credential|(access |auth |bearer )?token|access key|password|username|subscription key|signature|jwt)/,
  /api[ _-]?key (is |was |has )?(been )?(not (valid|found)|invalid|missing|required|expired|disabled|revoked)|no api[ _-]?key|(no|missing)( [a-z]{1,12})? credentials/,
  /(could not|couldn't|unable to|failed to) (load|locate|find|resolve) ([a-z]{1,12} ){0,3}credentials|credentials (were |are )?not (found|provided|set|configured|available)/,
  /\b(token|session|jwt|credentials?|password|login)( (provided|included in the request))? (is |has |have |was )?(been )?(expired|revoked|invalid|malformed)|expired.?token/,
  /\b(token|session|credentials?|login|api key)[^\n.:;]{0,40} (has|have|is|was|were) (been )?(expired|revoked)|signature (verification|mismatch|is invalid|does( not|n't) match)/,
  /account (is |has been |was )?(suspended|deactivated|disabled|banned|locked)|\b(noauth|wrongpass|noperm)\b/,
);

export const QUOTA: RegExp = any(
  /insufficient[ _](quota|balance|credit|fund)|(balance|funds|credits?) (is |are )?(insufficient|too low|exhausted|depleted|used up)|out of (quota|credits)|credit balance/,
  /quota_?exceeded|exceed(ed|s|ing)? (your |the |its )?([a-z]{1,20} )?quota|quota (has been |is )?(exceeded|exhausted|reached|depleted|used up)|(no|not enough|used all)( [a-z]{1,20})? credits/,
  /(usage|spend(ing)?|monthly|daily|weekly) limit (has been |was |is )?(reached|exceeded|hit)|exceed(ed|s|ing)? (your |the |its )?(usage|spend(ing)?|monthly|daily|weekly) limit/,
  /(subscription|license|licence|plan|trial)( period)? (has |is |was )?(been )?(expired|inactive|cancell?ed|over|ended|lapsed)|upgrade (to|your|the) |(plan|account|free.?tier) limit/,
  /payment[ _]required|\bbilling\b(?! (service|server|api|address))|card (was )?declined|\barrearage\b/,
);

const SETTINGS = 'time.?out|time.?limit|deadline|rate.?limit|throttl(e|ing)|back.?off|concurrency|keep.?alive|network|quota|retry|retries|dns|tls|ssl';

/** What speaks of the input by the name of a fault: `timeout must be positive`, `Network "x" not found`. Asked before the faults. */
const ABOUT_INPUT = any(
  /\bno such (?!host|service)[a-z]|\bno [a-z ]{1,30} (named|called|titled|with (that |this |the )?(id|name|title))\b/,
  /no overload matches|overloaded (function|method|operator|constructor|signature)/,
  /validation (error|fail)|failed validation|input should be|does not match (the )?schema/,
  new RegExp(`(invalid|unknown|unsupported|missing|unexpected|unrecogni[sz]ed|illegal|(cannot|could not|unable to|failed to) (parse|convert|cast))( required)? ['"\`]?(value|option|argument|param|field|property|key|setting|flag|config|${SETTINGS})`),
  new RegExp(`\\b(${SETTINGS})([^\\n.:;]|\\.\\d){0,40} (must|should be|is (required|missing|invalid|not (an?|valid|allowed|supported|defined)\\b)|has to be|out of range|too (long|large|small|short|big|high|low)|cannot be (?!reached|contacted|established|resolved|accessed))`),
  /\b(network|dns|certificate|rate.?limit|timeout|tls|ssl|quota|queue|connection)s?\b(?! ?(lookup|resol|server|error|query|request|name|refused|reset|closed))(\.\w{1,5}\b)?[^\n.:]{0,40}(not found|does( not|n't) exist|already exists|is not defined)/,
);

const RATE_LIMITED = any(
  /rate.?limit|too many requests|overload|throttl|slow.?down|rate exceeded|request rate|capacity exceeded|resource.?exhausted|concurren(cy|t)[^\n]{0,20} limit|\bback ?off\b|too (fast|frequent|often|quickly)/,
  /(requests|tokens|calls|messages) per|\bper (second|minute|min|hour)\b[^\n]{0,40}(limit|exceeded|reached)|limit[^\n]{0,40}\bper (second|minute|min|hour)\b/,
);

const UNTRUSTED = any(
  /(ssl|tls|ca|server|client|signed|issuer|root|leaf|first|peer) certificate|certificate (has |is |was )?(expired|verif|signed|chain|problem|error|unknown|validation|authority|revoked|not )|certificate's/,
  /certificate_verify|x509:|self.signed|unable_to_verify|\bcert_|altname/,
);

const TIMED_OUT = any(
  /timed?.?out|econnaborted|deadline.?(was |has )?(exceeded|expired|passed|reached|exhausted|elapsed)|(took|taking) too long|took longer than/,
  /time.?limit|time (budget|allowance)|(execution|running|run|processing|request) time exceeded|\d ?ms exceeded|exceeded [^\n]{0,30}\b(seconds|minutes|milliseconds)\b/,
  /exceed(ed|s) (the |its |their )?((max|maximum|allowed|allotted|configured) ){1,3}([a-z]{1,12} )?(time|duration|runtime)\b/,
  /(did( not|n't)|does( not|n't)|failed to) (respond|reply|answer)|not responding|no (response|answer|reply) (from [^\n]{1,40} )?(in|within|after)\b/,
  /(did( not|n't)|failed to) (finish|complete|return|start|load|appear|become [a-z]{1,12}) (in|within|before|after)\b|still running after|no (tokens?|data|bytes|output|progress|activity|heartbeat)[^\n]{0,20} (for|in|within) \d/,
  /(gave up|giving up|stopped) (waiting|after)|waited (too long|(for )?\d)|ran out of time|watchdog|by (a |the )?timer\b|\bstalled\b/,
);

const ACTIONS = 'request|operation|call|user|task|job|run|execution|query|action|process|invocation|command|context|statement|download|upload';

const CANCELED = any(
  new RegExp(`\\b(${ACTIONS}) (was |has been |is |got )?(aborted|cancell?ed|interrupted by)`),
  /\b(aborted|cancell?ed|interrupted|stopped|rejected) by (the )?(user|caller|client|operator)|user (declined|denied|rejected) (the )?(tool|call|request|action)/,
  /^(error: )?(aborted|cancell?ed)\.?$|aborterror|code = cancell?ed|keyboardinterrupt/,
);

const UNREACHABLE = any(
  /econnrefused|\benotfound\b|eai_again|eai_fail|ehostunreach|enetunreach|getaddrinfo|gaierror|name_not_resolved|nxdomain|servfail|dns (lookup|resolution|resolver|error|fail|query|server|request|problem)/,
  /name resolution|name or service not known|nodename nor servname|no such host|(could not|couldn't|cannot|can't|failed to|unable to) (resolve|look up) /,
  /\bconnect(ion)?[^\n]{0,60}refused|\bconnect(ion)?( attempt)? failed|all connection attempts failed|upstream connect error|\bnot connected\b|no route to host|unreachable|host is down/,
  /(could not|couldn't|cannot|can't|unable to|not able to|failed to|failure to) (be )?(connect(?!ed)|establish|reach(?!ed the)|contact|communicate)/,
);

const LOST = any(
  /econnreset|epipe|broken pipe|hung up|other side closed|premature (close|end)|disconnected|remote end closed|server closed|closed (unexpectedly|the connection|by (the )?(peer|server|remote))|lost connection|gone away/,
  /connection[ _](was |is |has been )?(unexpectedly )?(reset|closed|lost|terminated|aborted|dropped|interrupted|ended|broken|cut|failure|failed|died)|connection.?error|err_(connection|network|internet|http2)/,
  /socket (hang up|(was )?closed|error|is not open|has been ended)|(stream|channel|session) (was |has been )?(closed|interrupted|reset|aborted|dropped|broken)/,
  /websocket connection|transport (is )?(clos(ed|ing)|error)|^(typeerror: )?terminated$|(request|stream|response) ended (without|before|prematurely|unexpectedly)|load failed/,
  /network.?(error|fail|issue|problem|connection|is down|request|changed|glitch|lost)|(tls|ssl)[ _](handshake|error|connect|negotiation|alert|fail|routines|protocol|exception|socket)|handshake (failed|failure|error)/,
  /unexpected eof|\beof occurred|(^|: )eof$|incomplete (json segment|read|message|chunked)|incompleteread/,
);

/** What was there and is not, or is not for whoever asks: said of a service, it would be `temporarily`. */
const GONE = /\b(has|have|was|were|been) (already |been ){0,2}(deleted|removed|withdrawn|discontinued|retired)\b|\bpermanently\b|no longer|in your (country|region|plan)/;

const MACHINES = 'server|node|worker|host|backend|broker|instance|endpoint|connection|machine|replica|slot|gpu';

const UNAVAILABLE = any(
  /unavailable|temporar|(?<!non.?|not )\b(transient|retr[iy]able)\b|try (again|later)|(please|you can) (retry|wait)|retry (your|the|this|(in|after) \d)|(must|and) wait|wait \d/,
  /at (this time|the moment)|right now|in a (few|moment|minute|while|bit)|maintenance|outage|is (down|offline)\b|experiencing|high demand|(at|over|exceeds?|insufficient|enough|no) capacity/,
  /upstream|bad gateway|unexpected error|something went wrong|(internal|server).?(error|fault)|server had an error/,
  /(\b(is|are|was|too|currently)|server) busy\b|^busy\b|(is|are|be|currently) locked|(acquire|obtain|get) (the |a |an )?([a-z]{1,20} )?(lock|lease)|another [a-z]{1,20} is (running|in progress)/,
  /deadlock|could not serialize|serialization failure|write conflict|\b(clusterdown|masterdown|tryagain)\b|^-?readonly you|no (leader|primary|quorum)\b/,
  /starting up|(warming|spinning) up|restarting|is loading|^loading\b|not (yet )?ready|(server|service|system|api|leader|broker|node|host|worker|backend|endpoint|currently) (is )?(currently )?not available/,
  /too many (clients|connections|open (files|connections)|sessions|concurrent|pending|in.flight)|(connections?|pool|sessions?|threads?|workers?) (limit|exhausted)|pool (is )?(full|empty)|queue is full/,
  new RegExp(`no (healthy|available|live|active|free|idle) (${MACHINES})|no (${MACHINES})s? (is |are )?(currently )?available`),
);

/** What is so, and will be so the next time: a thing that is not, an input that does not fit. A failed attempt (`could not save`) says no such thing. */
const REJECTED = any(
  // That something is, is not, or is not so.
  /not.?found|no.?such|non-?existent|\bexists?\b|already|\blacks?\b|\bmissing\b|un(known|recogni[sz]ed|processable|acceptable|parse?able|declared|readable)|undefined (variable|function|symbol|column|reference)/,
  /\bno (?!longer|luck|idea|way|response|answer|reply|progress|details?|message|further|more|one|connection|route|data|bytes|reason|problem)[a-z\d'"`_]|\b(nothing|none|nobody|neither|either)\b/,
  /\b(is|are|was|were|does|do|has|have)( not|n't) (?!respond|reply|answer|yet|reachable|ready|running|connected|online|up\b|work|current|finish|complet|return|been (processed|completed|saved))/,
  /\bnot.?(acceptable|accessible|eligible|valid|available|unique|active|in[ _]|part of|an? |both|on|of|for|the|your|enough|possible|applicable|match|contain|include|meant|equal|\d|set|given|present)|not.?implemented/,
  /\bnot.(?!connect|respond|finish|load|start|reach|process|sync|deliver|receiv)[a-z]{2,14}ed\b|\bdid( not|n't) match/,
  // That something may not, or must.
  /\b(must|should|ha(s|ve) to|needs? (to|an?)|may not|require[sd]?|mandatory|expect(s|ed)|only|first|at (least|most))\b|support(s|ed)?\b|please (provide|specify|enter|select|choose|supply|check|use)/,
  /\b(cannot|can't) (?!connect|reach|contact|fetch|load|get|obtain|acquire|allocate|retrieve|read prop|process|complete|continue|proceed|handle|serve|perform|respond)/,
  /(could( not|n't)|unable to|failed to) (be )?(pars|find|found|locate|convert|cast|decod|deseriali|interpret|understand|validate|recogni|determin|delete|remove|rename|edit|modify|use|divide|add|assign|mix|combine|change)/,
  // That the input is wrong, or too much.
  /invalid|validation|malformed|\bbad\b|illegal|improper|\bwrong\b|incorrect|schema|syntax error|duplicate|precondition|mismatch|ambigu(ous|ity)|\b(empty|blank)\b(?! (response|reply|answer|body|result))|\bincomplete\b/,
  /unexpected ([a-z]{1,20} )?(type|token|character|symbol|argument|identifier|key|field|property|parameter|end of (input|file|statement|query))|divi(sion|de) by zero/,
  /out.?of.?(range|bounds)|outside|in the past\b|\bover \d+ ([kmg]b|bytes|characters)\b|too.?(large|long|big|short|small|many|few|old|new|high|low)|(greater|less|larger|smaller|longer|shorter|fewer|more|earlier|later) than/,
  /\bexceeds?\b|exceeded the|(limit|size|length|count)[^\n.]{0,30} exceeded|limit reached|reached (its|the|your)[^\n.]{0,20} limit|maximum|minimum|context.?(length|window)|length limit/,
  // That someone said no.
  /\b(declined|denied|rejected|prohibited|blocked|forbids?|refuse[sd]?|violat(es?|ed|ions?|ing)|restricted|disallowed|banned|blacklisted|dangerous|malicious|suspicious|unsafe|safety|private|copyright|flagged)\b|content (filter|policy|management)/,
  // What became of it.
  /\b((dis|de|un|in)(abled|activated|active|archived|registered|subscribed|verified|resolved|terminated|balanced|mapped|assigned|initiali[sz]ed)|ineligible|suspended|retired|discontinued|archived|frozen|cancell?ed|expired|revoked|deleted|removed|withdrawn)\b/,
  /\b(sold out|out of stock|fully booked|occupied|gone|in use|(been|is) (already )?(taken|used|merged|completed)|(account|window|registration|sale|poll|case|issue|ticket|is|has|was|were|got) closed|(was|were|got) merged|permanent|unrecoverable)\b/,
  /\b(conflict(s|ing)?|incompatible|inconsistent|corrupt(ed)?|insufficient|reserved|belongs?)\b|\boverlap|deprecated|unimplemented|read.only/,
  // What databases, languages, shells and HTTP clients say.
  /constraint (failed|error)|(unique|foreignkey|notnull|check)violation|cast error|is a directory|\b(wrongtype|enoent|eacces|eexist|eisdir|eperm|enotdir|einval)\b/,
  /\bzoderror\b|\b(value|key|index|attribute|assertion|import|zerodivision|unicode[a-z]{0,10}|lookup|type|name)error: (?!fetch|terminated)(?!cannot read prop)|redirect count|redirects|absolute urls/,
);

/** Short words that are a fault's only where nothing else is said: a network can be someone's, not only the one between us. */
const WEAK = /\b(network|tls|ssl|dns|connection|socket)\b/;

const rowsOf = (speaker: Speaker): readonly Row[] => {
  const llm = speaker === 'llm';
  return [
    ['unauthorized', UNAUTHORIZED],
    ['quota_exhausted', llm ? any(QUOTA, /credits/) : QUOTA],
    ['rejected', ABOUT_INPUT],
    ['rate_limited', RATE_LIMITED],
    ['untrusted', llm ? any(UNTRUSTED, /certificate/) : UNTRUSTED],
    ['timed_out', TIMED_OUT],
    ['canceled', CANCELED],
    ['unreachable', UNREACHABLE],
    ['lost', llm ? any(LOST, /network|\btls\b|\bssl\b|\bdns\b/) : LOST],
    ['rejected', GONE],
    ['unavailable', UNAVAILABLE],
    ['rejected', REJECTED],
    ['lost', WEAK],
  ];
};

/** What to ask of a text, by who speaks, in this order, which is that of `LlmErrorKind`: the first that matches decides. */
export const ROWS: Readonly<Record<Speaker, readonly Row[]>> = { llm: rowsOf('llm'), tool: rowsOf('tool') };
