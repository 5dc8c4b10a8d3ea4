import { any } from './any.ts';
import { FORMS_OF_INPUT } from './forms.ts';
import { FINAL_REPLY, PASSING_REPLY } from './reply.ts';
import type { Sense } from './sense.ts';

/** What a text that matches says. */
export type Row = readonly [Sense, RegExp];

/** Whose text it is: a model's provider never writes of film credits or gift certificates, a tool may. */
export type Speaker = 'llm' | 'tool';

/** A quota counted by the minute, or one with a wait, fills again: it is a rate limit. */
export const REFILLS: RegExp = /\b(per|this|each)[ _-]?(second|minute|hour|min)\b|(retry|try again) (in|after) \d/;

export const UNAUTHORIZED: RegExp = any(
  /\bauth (?!request|[bdpst])([a-z]{1,15} ){0,2}(error|fail|required|invalid)/,
  /(un|not )(be )?authori[sz]ed|authori[sz]ation (failed|failure|error|required|violation|denied)/,
  // A service of authentication can fail like any other.
  /(?<!message |temporary )authenticat(ion|e)(?! (service|server|provider|backend|endpoint)s? | (is )?already| in progress)/,
  /(log.?in|log.?on|sign.?in) (failed|failure|denied|rejected|incorrect)|\bno WORDS (permission|privilege)s?\b|(access|permission)[ _]?denied|permission.?error|forbidden/,
  /do(es)? not have (permission|access)|(log|sign) ?in (again|required|first|to continue)|(not|need to|must|please) (logged|sign(ed)?|log) in|\bnot (the )?(owner|author|creator)\b(?! of [a-z ]{0,12}(slot|shard|partition|lock|lease))|\bno access to/,
  /(invalid|incorrect|missing|bad|wrong|expired|revoked)[ _](x-)?(api[ _-]?key|credential|(access |auth |bearer )?token|access key|password|username|secret|subscription key|signature|jwt)/,
  /api[ _-]?key BEEN (not (valid|found)|invalid|missing|required|expired|disabled|revoked)/,
  /no api[ _-]?key|(no|missing)( [a-z]{1,12})? credentials/,
  /FAILED (load|locate|find|resolve) WORDS credentials/,
  /\b(token|session|jwt|credentials?|password|login|secret|signature)( (provided|included in the request))? BEEN (expired|revoked|rejected|invalid|malformed)/,
  /expired.?token/,
  /\b(token|oauth|session|credentials?|login|api key)[^\n.:;]{0,40} (has|have|is|was|were) (been )?(expired|revoked)/,
  /signature (verification|mismatch|is invalid|does not match)/,
  /\b(user|account|member|customer|tenant)s? BEEN (suspended|deactivated|disabled|banned|inactive|not active|locked|blocked)\b/,
  /\bverify your (account|e-?mail|phone|identity)\b/,
  /\baccounts? BEEN (locked|frozen|closed)\b|\b(white|allow|black|deny).?listed\b/,
  /\b(lack(s|ing)?|missing|insufficient|not enough) ([a-z\d]{1,12} ){0,2}(access|authority|permission|privilege|right|scope|role)/,
  /(?<!partitions? |lease )\brevoked\b/,
  /\b(credentials?|password|token|identity) FAILED be (verified|validated)/,
);

export const QUOTA: RegExp = any(
  /\bquota for [^\n.]{1,40} (exceeded|exhausted|reached|used up)\b/,
  /(sufficient|enough)[ _](quota|balance|credit|fund)/,
  /(balance|funds|credits?) BEEN (insufficient|not enough|too low|exhausted|depleted|used up)/,
  /out of (quota|credits|tokens|funds|searches)/,
  /exceed(ed|s|ing)? ([a-z]{1,20} ){0,5}(quota|credits)/,
  /quota[ _]?BEEN (exceeded|exhausted|reached|depleted|used up)/,
  /(no|not enough|used (up )?all( of)?)( [a-z]{1,20}){0,2} (credits|quota)/,
  /(usage|spend(ing)?|monthly|daily|weekly) (limit|cap) BEEN (reached|exceeded|hit)/,
  /exceed(ed|s|ing)? (your |the |its )?(usage|spend(ing)?|monthly|daily|weekly) limit/,
  /(subscription|license|licence|plan|trial)( period)? BEEN (expired|inactive|cancell?ed|over|ended|lapsed)/,
  /upgrade (to|your|the|plans?) |(plan|account|free.?tier) limit/,
  /payment[ _]required|\bbilling\b(?!\.\w| (service|server|api|address))/,
  // A network's card loses its link, a memory's is blocked by another process.
  /\b(expired|closed) card\b|\b(cvc|payment) declined\b/,
  /\bcard BEEN (reported )?(declined|expired|stolen|lost(?! [^o])|blocked(?! by a))/,
);

/**
 * What speaks of the input by the name of a fault: `timeout must be positive`, `Network "x" not found`. Asked before
 * the faults.
 */
const ABOUT_INPUT = any(
  /unavailable (for purchase|between)\b/,
  FINAL_REPLY,
  /\bconnections (is|are) not (allowed|permitted|supported)(?! (at this|right now|while|during|until))/,
  /\bnot support(ed)?\b(?! (at this|right now|while|during|until|when))/,
  /FAILED (parse|decode|read|deseriali[sz]e|unmarshal) (the |your )?(request|input\b|argument)/,
  // Told what to change before the next try: what was given does not do.
  /\b(?<!can )(check|fix|correct|change|create|add|provide|specify|select|choose|enter|remove|shorten)\b(?!.{0,80}(connection|network|server|service|status)).{1,80} and (try|retry|submit|send)\b/,
  /\bno such (?!host|service)[a-z]|\bno [a-z ]{1,30} (named|called|titled|with (that |this |the )?(id|name|title))\b/,
  /\b(module|package|library|binary|extension|plugin|driver)s? BEEN (not (available|installed)|missing)/,
  /no overload matches/,
  /validation (error|fail)/,
  /(invalid|unknown|unsupported|missing|unexpected|unrecogni[sz]ed|illegal|FAILED (parse|convert|cast))( required)? ['"`]?(m(ax|in)[_-]?)?(value|option|argument|param|field|property|key|setting|flag|config|SETTINGS)/,
  /\b[a-z]{0,20}(SETTINGS)([^\n.:;]|\.\d|: -?\d){0,40} (must|should be|is (required|missing|invalid|not (an?|valid|allowed|supported|defined)\b)|ha(s|ve) to be|out of range|too (long|large|small|short|big|high|low)|cannot (both )?be (?!reached|contacted|established|resolved|accessed)|(is|are) (negative|zero))/,
  /\b(network|dns|certificate|rate.?limit|timeout|tls|ssl|quota|queue|connection)s?\b(?! ?(lookup|resol|server|error|query|request|name|refused|reset|closed))(\.\w{1,5}\b)?[^\n.:]{0,40}(not found|does not exist|already exists|is not defined)/,
);

const RATE_LIMITED = any(
  /\bonly .{1,40} after \d/,
  /\b(rate|frequency|traffic) .{0,60}too (high|fast)\b|\b(sen[dt]|sending|making|made|posted) too many\b/,
  /rate.?limit|request limit|too many ([a-z]+ )?(requests|queries)|overload|throttl|slow.?down|rate exceeded|request rate|capacity exceeded|resource.?exhausted|concurren(cy|t).{0,20} limit|\bback ?off\b|too (fast|frequent|often|quickly)/,
  /\b([a-z]{2,20}s|limit.{0,40}) per [a-z]{0,5}_?(second|minute|min|hour)/,
);

const UNTRUSTED = any(
  /(ssl|tls|ca|server|client|signed|issuer|root|leaf|first|peer) certificate/,
  /certificate BEEN (expired|verif|signed|chain|problem|error|unknown|validation|authority|revoked|not )/,
  /x509:|self.signed|unable_to_verify|\bcert_|altname/,
);

const TIMED_OUT = any(
  /timed?.?out|econnaborted|deadline.?BEEN (exceeded|expired|passed|reached|exhausted|elapsed)/,
  /(took|taking) too long|took longer than/,
  /time.?limit|(execution|running|run|processing|request) time exceeded|\d ?ms exceeded/,
  /exceeded .{0,30}\b(seconds|minutes|milliseconds)\b/,
  /exceed(ed|s) (the |its |their )?((max|maximum|allowed|allotted|configured) ){1,3}([a-z]{1,12} )?(time|duration|runtime)\b/,
  /(did not|does not|failed to) (respond|reply|answer)|not responding/,
  /no (response|answer|reply) (from .{1,40} )?(in|within|after)\b/,
  /(did not|failed to) (finish|complete|return|start|load|appear|become [a-z]{1,12}) (in|within|before|after)\b/,
  /no (tokens?|data|bytes|output|progress|activity|heartbeat).{0,20} (for|in|within) \d/,
  /(gave up|giving up|stopped) (waiting|after)|waited (too long|(for )?\d)|ran out of time|\btoo slow\b/,
  /\bstalled\b/,
);

const ACTIONS =
  'request|operation|call|user|task|job|run|execution|query|action|process|invocation|' +
  'command|context|statement|download|upload';

const CANCELED = any(
  new RegExp(
    `\\b(${ACTIONS}) BEEN (aborted|cancell?ed|interrupted by(?! an?(other)? ))(?!: [a-z]| (due to|because|as |after|since|during|while|on ))`,
  ),
  /\b(aborted|cancell?ed|interrupted|stopped|rejected) by (the )?(user|caller|client|operator)/,
  /user (declined|denied|rejected) (the |this |your )?(tool|call|request|action)/,
  /^(error: )?(aborted|cancell?ed)\.?$|aborterror|keyboardinterrupt/,
);

const UNREACHABLE = any(
  /econnrefused|\benotfound\b|eai_again|eai_fail|ehostunreach|enetunreach|getaddrinfo|name_not_resolved/,
  /nxdomain|servfail|dns (lookup|resolution|resolver|error|fail|query|server|request|problem)/,
  /name resolution|name or service not known|\bunknown WORDS host\b(?! [a-z])|host(name)? (BEEN not found|could not be found)|nodename nor servname|no such host|FAILED (resolve|look up) (?!to an? |(the )?(symbol|reference|variable|module|type|path|depend|import|alias|column|field|identifier|action|"x" given))/,
  /\bconnect(ion)?.{0,60}refused|\bconnect(ion)?( attempt)? failed|all connection attempts failed/,
  /upstream connect error|\bnot connected\b|no route to host|unreachable|host is down/,
  /FAILED (be )?(connect(?!ed)|make an? connection|establish|reach(?!ed the)|contact|communicate)/,
);

const LOST = any(
  /econnreset|epipe|broken pipe|hung up|other side closed|premature (close|end)|disconnected|remote end closed/,
  /server closed|closed (unexpectedly|the connection|by (the )?(peer|server|remote))|lost connection|gone away/,
  /connection[ _]BEEN (unexpectedly )?(reset|closed|lost|terminated|aborted|dropped|interrupted|ended|broken|cut|failure|failed|died)/,
  /connection.?error|err_(connection|network|internet|http2)/,
  /socket (hang up|BEEN closed|error|is not open|has been ended)/,
  /(stream|channel|session) BEEN (closed|interrupted|reset|aborted|dropped|broken)/,
  /unexpected (disconnect|clos(e|ure)|hang ?up|termination)|websocket connection/,
  /transport (is )?(clos(ed|ing)|error)|^(typeerror: )?terminated$/,
  /(request|stream|response) ended (without|before|prematurely|unexpectedly)|\bload failed/,
  /network.?(error|fail|issue|problem|connection|is down|request|changed|glitch|lost)|(tls|ssl)[ _](handshake|error|connect|negotiation|alert|fail|routines|protocol|exception|socket)|handshake (failed|failure|error)/,
  /unexpected eof|\beof occurred|(^|: )eof$|incomplete ?(json segment|read|message|chunked)/,
);

/** What was there and is not, or is not for whoever asks: said of a service, it would be `temporarily`. */
const GONE =
  /(?<!\b(node|pod|server|host|worker|replica) )\b(has|have|was|were|been) (already |been ){0,2}(deleted|removed|withdrawn|discontinued|retired|archived)\b(?! (on|by) another)|\bpermanently\b|no longer|in your (country|region|plan)/;

const UNAVAILABLE = any(
  /\bshut(ting)? ?down\b|\bin process\b|\btoo old\b/,
  /\bnot yet (?!supported|implemented|allowed|permitted|available (in|for))/,
  /\b(buffer|queue|backlog|heap|pool|memory)\b.{0,20} exceeded|\bslower than\b/,
  /\bbytes (expected|remaining)\b/,
  /\b(hit|reached|exceed(s|ed)?|too many) .{0,40}\b(in.?flight|concurrent|simultaneous|open|active|pending|running|queued|outstanding)\b/,
  /\b(in.?flight|concurrent|simultaneous|open|active|pending|running|queued) [a-z]{1,20} BEEN (reached|exceeded)/,
  /\bnot (any|an?|enough) [a-z -]{1,30} available\b/,
  /\b(connection|pool) (is )?not available\b/,
  /unavailable|(?<!not )\bretrying\b|in[_ ]progress\b|\bwait(ing|ers?)?\b|temporar(?!y (topic|table|queue|file|folder|dir|password|object|token))|(?<!non.?|not )\b(transient|retr[iy]able)\b|try (again|later)|(please|you can|should) retry|restart (the )?(transaction|request|operation|query)|retry (your|the|this|(in|after) \d)/,
  /at (this time|the moment)|right now|in a (few|moment|minute|while|bit)|maintenance|outage|is (down|offline)\b/,
  /experiencing|(at|over|exceeds?) capacity|\b(insufficient|enough|no|out of)( [a-z]{1,12})? (capacity|memory|cpu|resources?)\b/,
  /upstream (re(quest|set|sponded|turned|sponse)|connect|error|fail|server|service|timed|timeout|prematurely|unavailable)|(from|by|bad) upstream|unexpected error|something (is |was |went )?wrong|(internal|server).?(error|fault)|server had an error/,
  /(\b(is|are|was|too|currently)|server|resource) busy\b|^busy\b|(is|are|be|currently) locked/,
  /(acquire|obtain|get|set) (the |a |an )?([a-z]{1,20} )?(lock|lease)/,
  /another ([a-z]{1,20} ){1,3}(is|seems to be|appears to be) [a-z]{2,12}ing/,
  /deadlock|could not serialize|write conflict|concurrent (modif|updat)/,
  /\b(leader|primary|coordinator|quorum) BEEN not (found|known|elected)\b/,
  /starting up|(warming|spinning) up|restarting|is loading|^loading\b|not (yet )?ready/,
  /(server|service|system|api|leader|broker|node|host|worker|backend|endpoint|state|currently) (is )?(currently )?not available/,
  /too many (clients|([a-z]+ )?connections|open files|sessions|concurrent|pending|in.flight)/,
  /(connections?|pool|sessions?|threads?|workers?) (limit|exhausted)|pool (is )?(full|empty)|queue is full/,
);

/** A state of the service in the words of a refusal. Asked before the refusals. */
const STATE = any(
  /\bby an?(other)? (different |concurrent |previous )?(transaction|process|request|session|thread|operation|upload|job|node|writer|update)\b/,
  /\b(cluster|node|replica|shard|partition|leader|generation|term|correlation|sequence) ([a-z]{1,10} )?mismatch\b/,
  /\bin an? [a-z]{1,20} state\b/,
  /\b(response|reply|answer) .{0,30}(understand|understood|interpret)/,
  /\bmatch (its|the|their) (crc|checksum|hash|digest)\b/,
  /\b(parse|decode|read|unmarshal|deseriali[sz]e) (the |its |their |an? )?(response|reply|answer)( from| body|[^ a-z]|$)/,
  /\b(server|response|reply|answer|upstream|provider|endpoint|backend) (did|does) not (include|contain|return|send)/,
  /\b(are|is) (buffered|queued)\b/,
  /\bno (active|available|healthy|live|running|ready|idle|free|online) (?!(subscription|plan|licen[cs]e|contract|account|user|card)s?\b)[a-z]/,
  /\bstuck\b|(?<!(ed|set|exists?|available) )yet$/,
  /during (the |an? )?(fail.?over|maint|election|migrat|upgrade|restart|recover|rebalanc)/,
  /\b(checksum|hash|digest|crc|length|size|sum)s? (do|did|does) not match|\b(response|reply|answer)( body| content)? BEEN (empty|blank)/,
  /(?<!did |can)not (yet |currently )?(running|ready|initiali[sz]ed|responding|complete)\b/,
  /\b(un(known|expected|explained|identified|specified)|unclassified) ([a-z]{1,20} )?(error|failure|fault|exception|problem|issue|reason|cause)\b/,
  /\b(no|none of( the| its)?|not enough( good)?|fewer|insufficient) ([a-z-]{1,20} ){0,3}(PARTS)s?\b(?! (named|called|with|matching|specified|given|provided|supplied|configured|"|in (the |your )?(request|url|body|input|query)|[a-z]{1,20} (was|were) found|found (that|with|matching)))/,
  /FAILED (find|get|obtain) (any |an? )?(available|free|healthy|idle|live|active)|\b(available|healthy|idle|live|active) ([a-z-]{1,20} ){0,2}(PARTS)s? not found/,
  /\b(PARTS)s? (is|are|was|were) (inactive|absent|lagging)/,
  /\b(PARTS)s? (is|are|was|were|has|have|had)( not| no longer)( been)? (?!found|supported|implemented|valid|a valid|allowed|permitted|defined|empty|too|invalid|required|missing)/,
  /FAILED (find|locate|determine|acquire|elect|read from|write to|start|create|open|fork|allocate|check out) ([a-z-]{1,20} ){0,4}(PARTS|process|connection|memory)s?\b(?! (named|called|with|"))/,
  /(invalid|bad|failed( its| the)?( crc)?) checksum|authentication code (incorrect|mismatch)|\b(length|hash|sum|digest|checksum|size|epoch|state) mismatch|\binvalid connection\b|\bbad (record|handshake|gateway|connection|response|reply|packet)\b|\bwrong version number|(wrong|invalid|malformed|unexpected) (response|reply|answer)\b|unexpected end of (file|input|stream|data|json|archive)/,
  /\b(state|status|reason|result|cause|outcome|error|health)( of [a-z ]{1,30})?( is| are|:)? unknown\b(?! [a-z])|returned (an? )?(invalid|malformed)|(returned|got|received|gave) (an? )?(empty|blank|null|unknown)|\b(should|must|will|(has|have|needs?) to) be (available|back|ready|up|restarted|rebuilt|reconnected)/,
  /\bmax(imum)?( number of| allowed)? (concurrent|open|retries|retry|attempts|connections|clients|sessions|applications|processes|jobs|call stack|redirects)/,
  /(retries|retry|attempts?|stack size|overhead|flow control)( limit)? (reached|exceeded)/,
  /(should|must|can|may|needs? to) be (re-?tried|repeated|re-?sent|resubmitted|attempted again)|(already|currently|request|call) (in flight|running|under way)|\b(already|still|currently) ([a-z]{1,15} )?(attached|mounted|held|leased|in use by)\b|\b(locks|connections|threads|sessions|processes|requests) exceeds?\b|\b(lag|load|latency|pressure|utili[sz]ation|usage|backlog)( is)? too (high|long|large|deep)|in (recovery|a read-only|draining|standby|failover)\b|\b(buffer|system|disk) (space|storage)\b(?! quota)/,
);

/**
 * What is so, and will be so the next time: an input that does not fit, a name that nothing has, what is not supported
 * or not allowed. Words make nothing else permanent (R-1.3): what only sounds final, like `the window has closed`, may
 * be tried again.
 */
const REJECTED = any(
  // Not found by its name.
  /not.?(be )?found|no.?such|non-?existent|\bno WORDS (named|called|titled|found|exists?|match(e[sd])?|matching|registered|defined)\b|\bno [a-z-]{1,20}( "|_[a-z])|\bno [^\n.:]{1,60} found\b|\bnothing (found|matched)|\bnobody (named|called)|\bunconfigured\b/,
  /\bno ([\w.]{1,20} )?(entry|mapping|definition|handler|overload|rule|target) (for|to)\b/,
  /\bno [a-z ]{1,30} (of type|for (this|that|"))/,
  /\bno (rows|results|records|matches)\b/,
  /match(es|ed)? no(thing)? /,
  /\bun(known|recogni[sz]ed|declared|registered|allocated(?! s))\b(?! (error|failure|fault|exception|problem|issue|reason|cause|status|state)s?\b)|not (known|defined|declared|registered|recogni[sz]ed|configured|listed|offered)\b/,
  /FAILED (be )?(find|found|resolve to|locate|recogni|determin|identif)|\bnot (in|on|one of|among|part of) (?!sync|time|service|ready|an? (healthy |valid |good )?state|the right state)|(^|\b(directory|mkdir|open)\b.{0,80})file exists/,
  // Invalid or malformed input.
  /invalid|malformed|ill.?formed|not well.?formed|badly|\bun(terminated|balanced|closed) (?!connection|socket|stream)|\bempty (query|body|input|string|list|name|value|message|prompt|field|array)|illegal|improper|incomplete (command|address)|(command|address) incomplete|\ban? null (?!re|a)[a-z]|\bincorrect|\bun(?!avail|reach|st|us|recover|deliver|schedul|routa)[a-z]{3,12}able\b|not correct\b|validati(on|ng)|syntax|(?<!ing )schema/,
  /(?<!went |goes |going |gone )\bwrong\b/,
  /\bbad WORDS (request|input|value|argument|param|format|data|type|option|name|number|size|protocol|address|sequence|url|syntax|file|length|date|id|code|json|xml|version|config|line)/,
  /(could not|unable to|failed to|cannot|problems?|error) (be )?(pars|compil|convert|cast|decod|deseriali|unmarshal|resolve |bound\b|interpret|understand|validat|divide)|not json|cast error|conversion (failed|error)|\berror [a-z ]{0,20}pars|\b(value|key|index|attribute|import|zerodivision|unicode[a-z]{0,10}|lookup|type|name)error: (?!fetch|terminated|cannot read prop)/,
  /\b(must|shall)\b|\bshould (be|have|not|contain|match|start|end|only)\b|\b(has|have|ought) to\b(?! be (done|started) again)/,
  /(?<!than )\b(is|are|was|were|field|argument|param(eter)?|value|property|input|column)s? (required|mandatory|missing|empty|blank|null|nil|undefined)\b|\b(required|missing|mandatory|duplicated?|extra|unrecogni[sz]ed) [a-z"]{1,30}|\bmissing(?=["\n:]|\.?$)|(: |^)(missing|required)\b|\blacks\b|\b(?!(than|retry|restart|rejoin|resync|reconnect|recovery|repair|state|is|are|was) )[a-z]{2,20} required\b/,
  /(^|[:"*>\]] ?)expected [a-z]|\bexpect(s|ed)([,:]| .{1,60}?[ ,](got|received|but|found|was|to (be|have|equal|match))\b| (an?|one|two|three|exactly|at|type|number|string|boolean|object|array|value|\d|"))|\bat (least|most) (\d|one|two|a\b)|please (ensure that|provide|specify|enter|select|choose|supply|use|set|install|upgrade|enable|remove|correct|add)\b|\bdid you (mean|forget)\b|\b(valid|allowed|possible|accepted|supported) [a-z]{3,15}( are|:)/,
  /\bnot (an? (?!(leader|primary|master|replica)\b)|valid|empty|acceptable|integer|number|string|boolean|array|object|date|positive|unique|float|list|directory|file|null)\b|do(es)? not (match|allow|permit|satisf|validat|verify|conform|comply|qualif|own|meet|fit|look like|make sense|appear to be an? |implement|equal|correspond|contain|includ|belong|authori|agree with|accept (?!(new )?connections)|represent|apply|(start|end) with|recogni|resolve to|store|have (?!enough|been|to|recent|current|[a-z ]{1,25}(online|ready|running|available)|sufficient (?!perm|priv|right|access|role)))|\bdid not (find|resolve to|belong|include|match|fit|conform|contain|validate|verify)|(mis|no )match/,
  /out.?of.?([a-z]{1,12}.)?(range|bounds)|outside|\bover \d+ ?([kmg]b|bytes|characters)\b|\b(below|above) \d|too.?(large|long|big|short|small|few|high|low|weak|common|simple|permissive)|(greater|less|larger|bigger|smaller|longer|shorter|earlier|later|higher|lower|more) than|\bmore (?!data|bytes)[a-z]{1,15} than|in the past\b|is in the future|make(s)? no sense/,
  /\bexceeds?\b|exceeded the|(size|length|count|character|field|item|token|depth|context)s?( limit)? BEEN exceeded|\b(maximum|minimum)\b|(size|length) limit/,
  /already (exists?|in use|used|taken|registered|assigned|defined|a member|been (used|taken|registered))|\b(is|been) taken\b|duplicat|constraint (fail(s|ed)|error|violation)|\b(start|end|date|time)( [a-z]{1,12})? is (before|after|earlier|later)\b|violat(es?|ed|ing)\b|divi(sion|de) by zero|precondition|(?<!(result|outcome|commit) is )ambiguous|mutually exclusive/,
  /unexpected ([a-z]{1,20} )?(type|token|character|symbol|argument|identifier|key|field|property|param|keyword|option)/,
  /is a directory|\bused on an? non-/,
  // Unsupported.
  /unsupport|\b(not|never|no longer) (be |been )?(support(ed)?\b|implemented|(?<!has not )accepted|available (in|on|for) (your|this))|not.?implemented|unimplemented|deprecated|no [a-z]{1,20} support|only (support|accept|allow)|not installed/,
  // Not allowed.
  /\bnot (be )?(allow(ed)?|permitted|granted|eligible|entitled)\b|\b(denied|prohibited|forbids?|disallowed|banned|restrict(s|ed))\b|(?<!\.)\bblocked( by(?! (a |an)?(different|other))|$|[\n"]| \()|\b(is|are|was|were|been) blocked\b|content (filter|policy|management)|\bmoderat(ed|ion)\b|(due to|by|against) WORDS policy\b|\b(safety|copyright|malicious)\b|\bis (a )?private\b|not accessible|not yours|belongs? to (another|someone)|(email|phone|user|account|identity|signature|sender|domain|address)[a-z ]{0,12} not (been )?(verified|activated|confirmed|approved)/,
  /limit of [^\n.]{1,40} (reached|exceeded)/,
  /(card|credit|amount|transfer|member|seat|project|storage|upload|attachment|item|file|row)s? limit BEEN (exceed|reach)ed/,
);

/** Parts of what is given to a service: where nothing says that the service failed, they are what does not do. */
const INPUT =
  /^(?!.*(stopped|pending|loading|store |service |crash|exhaust|could not|unable to|failed|occurred|while |restart|cannot read|connection|version|session|response|object|in use|being|preempt|reset in|still \w+ing|(node|server|cluster|process)\b)).*\b(enum|param|arg(ument)?s?\b|input(?!\/| stream)|specif(?!ic )|api.?key|requir|(?<!(open|load|get|from) )url\b|field|column(?! \d|s)|integer|int\b|float|numeric|string(?= \w)|variable|propert|attribute|identifier|user ?name|suffix)/;

/**
 * Short words that are a fault's only where nothing else is said: a network can be someone's, not only the one between
 * us.
 */
const WEAK = /\b(network|tls|ssl|dns|connection|socket)\b/;

const rowsOf = (speaker: Speaker): readonly Row[] => {
  const llm = speaker === 'llm';
  return [
    ['unavailable', any(PASSING_REPLY, /^4\.\d\.\d /)],
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
    ['unavailable', STATE],
    ['rejected', REJECTED],
    ['rejected', FORMS_OF_INPUT],
    ['rejected', INPUT],
    ['lost', WEAK],
  ];
};

/**
 * The tables that a text is matched with, by whose text it is, in this order, which is that of `LlmErrorKind`: the
 * first that matches decides.
 */
export const ROWS: Readonly<Record<Speaker, readonly Row[]>> = { llm: rowsOf('llm'), tool: rowsOf('tool') };
