import { any } from './any.ts';
import { FINAL_REPLY } from './reply.ts';

/** A quota counted by the minute, or one with a wait, fills again: it is a rate limit. */
export const REFILLS: RegExp = /\b(per|this|each)[ _-]?(second|minute|hour|min)\b|(retry|try again) (in|after) \d/;

export const UNAUTHORIZED: RegExp = any(
  /\bauth (?!request|[bdpst])([a-z]{1,15} ){0,2}(error|fail|required|invalid)/,
  /(un|not )(be )?authori[sz]ed|authori[sz]ation (failed|failure|error|required|violation|denied)/,
  // A service of authentication can fail like any other.
  /(?<!message |temporary )authenticat(ion|e)(?! (service|server|provider|backend|endpoint)s? | (is )?already| in progress)/,
  /(log.?in|log.?on|sign.?in) (failed|failure|denied|rejected|incorrect)|\bno WORDS (permission|privilege)s?\b/,
  /(access|permission)[ _]?denied|permission.?error|forbidden/,
  /do(es)? not have (permission|access)|(log|sign) ?in (again|required|first|to continue)/,
  /(not|need to|must|please) (logged|sign(ed)?|log) in/,
  /\bnot (the )?(owner|author|creator)\b(?! of [a-z ]{0,12}(slot|shard|partition|lock|lease))|\bno access to/,
  /(invalid|incorrect|missing|bad|wrong|expired|revoked)[ _](x-)?(api[ _-]?key|credential|(access |auth |bearer )?token|access key|password|username|secret|subscription key|signature|jwt)/,
  /\bno (refresh|access|auth) token\b/,
  /api[ _-]?key BEEN (not (valid|found)|invalid|missing|required|expired|disabled|revoked)/,
  /no api[ _-]?key|(no|missing)( [a-z]{1,12})? credentials/,
  /FAILED (load|locate|find|resolve) WORDS credentials/,
  /\b(token|session|jwt|credentials?|password|login|secret|signature)( (provided|included in the request))? BEEN (expired|revoked|rejected|invalid|malformed)/,
  /expired.?token/,
  /\b(rejected|refused|declined) (the|your|its) (api key|credentials?|token|password)\b/,
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
export const ABOUT_INPUT: RegExp = any(
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

/** What was there and is not, or is not for whoever asks: said of a service, it would be `temporarily`. */
export const GONE: RegExp =
  /(?<!\b(node|pod|server|host|worker|replica) )\b(has|have|was|were|been) (already |been ){0,2}(deleted|removed|withdrawn|discontinued|retired|archived)\b(?! (on|by) another)|\bpermanently\b|no longer|in your (country|region|plan)/;

/**
 * What is so, and will be so the next time: an input that does not fit, a name that nothing has, what is not supported
 * or not allowed. Words make nothing else permanent (R-1.3): what only sounds final, like `the window has closed`, may
 * be tried again.
 */
export const REJECTED: RegExp = any(
  // Not found by its name.
  /not.?(be )?found|no.?such|non-?existent/,
  /\bno WORDS (named|called|titled|found|exists?|match(e[sd])?|matching|registered|defined)\b/,
  /\bno [a-z-]{1,20}( "|_[a-z])|\bno [^\n.:]{1,60} found\b|\bnothing (found|matched)|\bnobody (named|called)/,
  /\bunconfigured\b/,
  /\bno ([\w.]{1,20} )?(entry|mapping|definition|handler|overload|rule|target) (for|to)\b/,
  /\bno [a-z ]{1,30} (of type|for (this|that|"))/,
  /\bno (rows|results|records|matches)\b/,
  /match(es|ed)? no(thing)? /,
  /\bun(known|recogni[sz]ed|declared|registered|allocated(?! s))\b(?! (error|failure|fault|exception|problem|issue|reason|cause|status|state)s?\b)/,
  /not (known|defined|declared|registered|recogni[sz]ed|configured|listed|offered)\b/,
  /FAILED (be )?(find|found|resolve to|locate|recogni|determin|identif)/,
  /\bnot (in|on|one of|among|part of) (?!sync|time|service|ready|an? (healthy |valid |good )?state|the right state)/,
  /(^|\b(directory|mkdir|open)\b.{0,80})file exists/,
  /\b(no|nobody) [a-z ]{0,30}\b(of|with|by) that (name|number|id|email|title|key)\b|\bno [a-z]+ has that\b/,
  /\bthat [a-z]+ is not there\b|\byou (are )?(look|ask)(ed|ing)? for (is|was) not\b/,
  /\bhas no ([a-z]+ (\d|one|two|three|four|five|six|seven|eight|nine|ten)|at sign|([a-z]+ )?(customer|account|rights?|permission|licen[cs]e|address)\b)/,
  // Invalid or malformed input.
  /invalid|malformed|ill.?formed|not well.?formed|badly|\bun(terminated|balanced|closed) (?!connection|socket|stream)/,
  /\bempty (query|body|input|string|list|name|value|message|prompt|field|array)|illegal|improper/,
  /incomplete (command|address)|(command|address) incomplete|\ban? null (?!re|a)[a-z]|\bincorrect/,
  /\bun(?!avail|reach|st|us|recover|deliver|schedul|routa)[a-z]{3,12}able\b|not correct\b|validati(on|ng)|syntax/,
  /(?<!ing )schema/,
  /(?<!went |goes |going |gone )\bwrong\b/,
  /\bbad WORDS (request|input|value|argument|param|format|data|type|option|name|number|size|protocol|address|sequence|url|syntax|file|length|date|id|code|json|xml|version|config|line)/,
  /(could not|unable to|failed to|cannot|problems?|error) (be )?(pars|compil|convert|cast|decod|deseriali|unmarshal|resolve |bound\b|interpret|understand|validat|divide)/,
  /not json|cast error|conversion (failed|error)|\berror [a-z ]{0,20}pars/,
  /\b(value|key|index|attribute|import|zerodivision|unicode[a-z]{0,10}|lookup|type|name)error: (?!fetch|terminated|cannot read prop)/,
  /\b(must|shall)\b|\bshould (be|have|not|contain|match|start|end|only)\b/,
  /\b(has|have|ought) to\b(?! be (done|started) again)/,
  /(?<!than )\b(is|are|was|were|field|argument|param(eter)?|value|property|input|column)s? (required|mandatory|missing|empty|blank|null|nil|undefined)\b/,
  /\b(required|missing|mandatory|duplicated?|extra|unrecogni[sz]ed) [a-z"]{1,30}|\bmissing(?=["\n:]|\.?$)/,
  /(: |^)(missing|required)\b|\blacks\b/,
  /\b(?!(than|retry|restart|rejoin|resync|reconnect|recovery|repair|state|is|are|was) )[a-z]{2,20} required\b/,
  /(^|[:"*>\]] ?)expected [a-z]/,
  /\bexpect(s|ed)([,:]| .{1,60}?[ ,](got|received|but|found|was|to (be|have|equal|match))\b| (an?|one|two|three|exactly|at|type|number|string|boolean|object|array|value|\d|"))/,
  /\bat (least|most) (\d|one|two|a\b)/,
  /please (ensure that|configure|provide|specify|enter|select|choose|supply|use|set|install|upgrade|enable|remove|correct|add)\b/,
  /\bdid you (mean|forget)\b|\b(valid|allowed|possible|accepted|supported) [a-z]{3,15}( are|:)/,
  /\bnot (an? (?!(leader|primary|master|replica)\b)|valid|empty|acceptable|integer|number|string|boolean|array|object|date|positive|unique|float|list|directory|file|null)\b/,
  /do(es)? not (match|allow|permit|satisf|validat|verify|conform|comply|qualif|own|meet|fit|look like|make sense|appear to be an? |implement|equal|correspond|contain|includ|belong|authori|agree with|accept (?!(new )?connections)|represent|apply|(start|end) with|recogni|resolve to|store|have (?!enough|been|to|recent|current|[a-z ]{1,25}(online|ready|running|available)|sufficient (?!perm|priv|right|access|role)))/,
  /\bdid not (find|resolve to|belong|include|match|fit|conform|contain|validate|verify)|(mis|no )match/,
  /out.?of.?([a-z]{1,12}.)?(range|bounds)|outside|\bover \d+ ?([kmg]b|bytes|characters)\b|\b(below|above) \d/,
  /too.?(large|long|big|short|small|few|high|low|weak|common|simple|permissive)/,
  /(greater|less|larger|bigger|smaller|longer|shorter|earlier|later|higher|lower|more) than/,
  /\bmore (?!data|bytes)[a-z]{1,15} than|in the past\b|is in the future|make(s)? no sense/,
  /\bexceeds?\b|exceeded the|(size|length|count|character|field|item|token|depth|context)s?( limit)? BEEN exceeded/,
  /\b(maximum|minimum)\b|(size|length) limit/,
  /already (exists?|in use|used|taken|registered|assigned|defined|a member|been (used|taken|registered))/,
  /\b(is|been) taken\b|duplicat|constraint (fail(s|ed)|error|violation)/,
  /\b(start|end|date|time)( [a-z]{1,12})? is (before|after|earlier|later)\b|violat(es?|ed|ing)\b/,
  /divi(sion|de) by zero|precondition|(?<!(result|outcome|commit) is )ambiguous|mutually exclusive/,
  /unexpected ([a-z]{1,20} )?(type|token|character|symbol|argument|identifier|key|field|property|param|keyword|option)/,
  /is a directory|\bused on an? non-/,
  /\bneeds? (an?|one|two|three|\d+) [a-z ]{0,20}(number|code|name|value|address|character|digit|argument|letter)s?\b/,
  /\bshould look like\b|\bdiffer in (number|length|size|type|shape)\b/,
  /\bexpect (an? )?(file|string|number|object|array|list|value)\b|\bdoes not (cover|suppl|open th(is|at))/,
  /\bis not used($|["\n])|\ba [a-z]+ too many\b/,
  /\bnone of the [a-z ]{1,30} (contains?|ha(s|ve)|match)|\b(end|start) (lies|comes) (before|after)\b/,
  /\bunexpected format\b|\bpath escapes\b|\bno [a-z ]{1,20} set for\b/,
  /(^|[:"*>\]] ?)only (letters|digits|numbers|characters)\b|\bof a kind\b/,
  /\b(error|typo|mistake) (on|in|at|near) (line|row|column|position|character|from)\b/,
  // Unsupported.
  /unsupport/,
  /\bnot (one|something|anything) (that )?(we|i|it|you) can\b|\bout of reach of\b/,
  /\bwe do not (accept|support|offer|serve|ship|sell|send|open|know|take|deliver|allow)\b(?!.* (yet|until|today|tonight|now|before)\b)/,
  /\b(not|never|no longer) (be |been )?(support(ed)?\b|implemented|(?<!has not )accepted|available (in|on|for) (your|this))/,
  /not.?implemented|unimplemented|deprecated|no [a-z]{1,20} support|only (support|accept|allow)|not installed/,
  // Not allowed.
  /\byou do not [a-z]+ th(is|at)\b|\byou can [a-z ]{2,20}only \d/,
  /\bcannot be [a-z]+ed by an? [a-z]+ (account|user|client|role)\b/,
  /\bnot (be )?(allow(ed)?|permitted|granted|eligible|entitled)\b/,
  /\b(denied|prohibited|forbids?|disallowed|banned|restrict(s|ed))\b/,
  /(?<!\.)\bblocked( by(?! (a |an)?(different|other))|$|[\n"]| \()|\b(is|are|was|were|been) blocked\b/,
  /content (filter|policy|management)|\bmoderat(ed|ion)\b|(due to|by|against) WORDS policy\b/,
  /\b(safety|copyright|malicious)\b|\bis (a )?private\b|not accessible|not yours|belongs? to (another|someone)/,
  /(email|phone|user|account|identity|signature|sender|domain|address)[a-z ]{0,12} not (been )?(verified|activated|confirmed|approved)/,
  /\bno rights? to\b|\boff for your\b|\bfor (?!today|now)[a-z ]{1,20} only($|["\n])/,
  /limit of [^\n.]{1,40} (reached|exceeded)/,
  /(card|credit|amount|transfer|member|seat|project|storage|upload|attachment|item|file|row)s? limit BEEN (exceed|reach)ed/,
);

/** Parts of what is given to a service: where nothing says that the service failed, they are what does not do. */
export const INPUT: RegExp =
  /^(?!.*(stopped|pending|loading|store |service |crash|exhaust|could not|unable to|failed|occurred|while |restart|cannot read|connection|version|session|response|object|in use|being|preempt|reset in|still \w+ing|(node|server|cluster|process)\b)).*\b(enum|param|arg(ument)?s?\b|input(?!\/| stream)|specif(?!ic )|api.?key|requir|(?<!(open|load|get|from) )url\b|field|column(?! \d|s)|integer|int\b|float|numeric|string(?= \w)|variable|propert|attribute|identifier|user ?name|suffix)/;
