import { any } from './any.ts';

export const RATE_LIMITED: RegExp = any(
  /\bonly .{1,40} after \d/,
  /\btoo many .{1,60} this (second|minute|hour)\b/,
  /\b(rate|frequency|traffic) .{0,60}too (high|fast)\b|\b(sen[dt]|sending|making|made|posted) too many\b/,
  /rate.?limit|request limit|too many ([a-z]+ )?(requests|queries)|overload|throttl|slow.?down|rate exceeded/,
  /request rate|capacity exceeded|resource.?exhausted|concurren(cy|t).{0,20} limit|\bback ?off\b/,
  /too (fast|frequent|often|quickly)/,
  /\b([a-z]{2,20}s|limit.{0,40}) per [a-z]{0,5}_?(second|minute|min|hour)/,
);

export const UNTRUSTED: RegExp = any(
  /(ssl|tls|ca|server|client|signed|issuer|root|leaf|first|peer) certificate/,
  /certificate BEEN (expired|verif|signed|chain|problem|error|unknown|validation|authority|revoked|not )/,
  /x509:|self.signed|unable_to_verify|\bcert_|altname/,
);

export const TIMED_OUT: RegExp = any(
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

export const CANCELED: RegExp = any(
  new RegExp(
    `\\b(${ACTIONS}) BEEN (aborted|cancell?ed|interrupted by(?! an?(other)? ))(?!: [a-z]| (due to|because|as |after|since|during|while|on ))`,
  ),
  /\b(aborted|cancell?ed|interrupted|stopped|rejected) by (the )?(user|caller|client|operator)/,
  /user (declined|denied|rejected) (the |this |your )?(tool|call|request|action)/,
  /^(error: )?(aborted|cancell?ed)\.?$|aborterror|keyboardinterrupt/,
);

export const UNREACHABLE: RegExp = any(
  /econnrefused|\benotfound\b|eai_again|eai_fail|ehostunreach|enetunreach|getaddrinfo|name_not_resolved/,
  /nxdomain|servfail|dns (lookup|resolution|resolver|error|fail|query|server|request|problem)/,
  /name resolution|name or service not known|\bunknown WORDS host\b(?! [a-z])/,
  /host(name)? (BEEN not found|could not be found)|nodename nor servname|no such host/,
  /FAILED (resolve|look up) (?!to an? |(the )?(symbol|reference|variable|module|type|path|depend|import|alias|column|field|identifier|action|"x" given))/,
  /\bconnect(ion)?.{0,60}refused|\bconnect(ion)?( attempt)? failed|all connection attempts failed/,
  /upstream connect error|\bnot connected\b|no route to host|unreachable|host is down/,
  /FAILED (be )?(connect(?!ed)|make an? connection|establish|reach(?!ed the)|contact|communicate)/,
);

export const LOST: RegExp = any(
  /econnreset|epipe|broken pipe|hung up|other side closed|premature (close|end)|disconnected|remote end closed/,
  /server closed|closed (unexpectedly|the connection|by (the )?(peer|server|remote))|lost connection|gone away/,
  /connection[ _]BEEN (unexpectedly )?(reset|closed|lost|terminated|aborted|dropped|interrupted|ended|broken|cut|failure|failed|died)/,
  /connection.?error|err_(connection|network|internet|http2)/,
  /socket (hang up|BEEN closed|error|is not open|has been ended)/,
  /(stream|channel|session) BEEN (closed|interrupted|reset|aborted|dropped|broken)/,
  /unexpected (disconnect|clos(e|ure)|hang ?up|termination)|websocket connection/,
  /transport (is )?(clos(ed|ing)|error)|^(typeerror: )?terminated$/,
  /(request|stream|response) ended (without|before|prematurely|unexpectedly)|\bload failed/,
  /network.?(error|fail|issue|problem|connection|is down|request|changed|glitch|lost)/,
  /(tls|ssl)[ _](handshake|error|connect|negotiation|alert|fail|routines|protocol|exception|socket)/,
  /handshake (failed|failure|error)/,
  /unexpected eof|\beof occurred|(^|: )eof$|incomplete ?(json segment|read|message|chunked)/,
);

export const UNAVAILABLE: RegExp = any(
  /\bshut(ting)? ?down\b|\bin process\b|\btoo old\b/,
  /\bnot yet (?!supported|implemented|allowed|permitted|available (in|for))/,
  /\b(buffer|queue|backlog|heap|pool|memory)\b.{0,20} exceeded|\bslower than\b/,
  /\bbytes (expected|remaining)\b/,
  /\b(hit|reached|exceed(s|ed)?|too many) .{0,40}\b(in.?flight|concurrent|simultaneous|open|active|pending|running|queued|outstanding)\b/,
  /\b(in.?flight|concurrent|simultaneous|open|active|pending|running|queued) [a-z]{1,20} BEEN (reached|exceeded)/,
  /\bnot (any|an?|enough) [a-z -]{1,30} available\b/,
  /\b(connection|pool) (is )?not available\b/,
  /unavailable|(?<!not )\bretrying\b|in[_ ]progress\b|\bwait(ing|ers?)?\b/,
  /temporar(?!y (topic|table|queue|file|folder|dir|password|object|token))/,
  /(?<!non.?|not )\b(transient|retr[iy]able)\b|try (again|later)|(please|you can|should) retry/,
  /restart (the )?(transaction|request|operation|query)|retry (your|the|this|(in|after) \d)/,
  /at (this time|the moment)|right now|in a (few|moment|minute|while|bit)|maintenance|outage|is (down|offline)\b/,
  /experiencing|(at|over|exceeds?) capacity/,
  /\b(insufficient|enough|no|out of)( [a-z]{1,12})? (capacity|memory|cpu|resources?)\b/,
  /upstream (re(quest|set|sponded|turned|sponse)|connect|error|fail|server|service|timed|timeout|prematurely|unavailable)/,
  /(from|by|bad) upstream|unexpected error|something (is |was |went )?wrong|(internal|server).?(error|fault)/,
  /server had an error/,
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
export const STATE: RegExp = any(
  /\bby an?(other)? (different |concurrent |previous )?(transaction|process|request|session|thread|operation|upload|job|node|writer|update)\b/,
  /\b(cluster|node|replica|shard|partition|leader|generation|term|correlation|sequence) ([a-z]{1,10} )?mismatch\b/,
  /\bin (an?|the|(the|its) current)( [a-z]{1,20})? state\b/,
  // What a thing is to be before it does what was asked; an input is to be before another.
  /^(?!.*\b(you|users?|accounts?|members?|e-?mails?)\b).*\b(must|should|ha(s|ve) to) .{1,40}\bbefore (it|they) can\b/,
  /\b(instance|cluster|job|node|server|worker|service|robot|door|pump|printer|drive) must be (running|stopped|started|ready|online|open|closed|idle|up|homed|calibrated|switched|unlocked)\b/,
  /\b(not (allowed|permitted|accepted|valid|possible)|forbidden|blocked|denied|refused) (while|during|until|outside|by (an? )?(freeze|lock|hold|overlay|obstacle))\b/,
  /\b(invalid|wrong|stale|unknown|bad) ([a-z]+ ){0,2}(epoch|generation|member id)\b/,
  /\bmissing (heartbeat|acknowledg)/,
  /\bexpected \d+ (healthy|ready|live|running)\b/,
  /\b(nonce|stock|battery|fuel|tide|temperature|pressure) (is )?too (low|high|weak)\b/,
  /\b(port|socket|device|resource|volume|disk|line|printer|camera) (is )?(already )?(in use|occupied)\b/,
  /\billegal memory access\b|\b(heap|stack|queue|buffer|book|bin|pool) is empty\b|\b(is|are) still [a-z]+ing\b/,
  /\bis being [a-z]+ed\b|\bin flight\b/,
  /\b(response|reply|answer) .{0,30}(understand|understood|interpret)/,
  /\bmatch (its|the|their) (crc|checksum|hash|digest)\b/,
  /\b(parse|decode|read|unmarshal|deseriali[sz]e) (the |its |their |an? )?(response|reply|answer)( (from|of)| body|[^ a-z]|$)/,
  /\bunexpected token <|\bmalformed packet/,
  /\b(server|response|reply|answer|upstream|provider|endpoint|backend) (did|does) not (include|contain|return|send)/,
  /\b(are|is) (buffered|queued)\b/,
  /\bno (active|available|healthy|live|running|ready|idle|free|online) (?!(subscription|plan|licen[cs]e|contract|account|user|card)s?\b)[a-z]/,
  /\bstuck\b|(?<!(ed|set|exists?|available) )yet($|["\n])/,
  /during (the |an? )?(fail.?over|maint|election|migrat|upgrade|restart|recover|rebalanc)/,
  /\b(checksum|hash|digest|crc|length|size|sum)s? (do|did|does) not match/,
  /\b(response|reply|answer)( body| content)? BEEN (empty|blank)/,
  /(?<!did |can)not (yet |currently )?(running|ready|initiali[sz]ed|responding|complete)\b/,
  /\b(un(known|expected|explained|identified|specified)|unclassified) ([a-z]{1,20} )?(error|failure|fault|exception|problem|issue|reason|cause)\b/,
  /\b(no|none of( the| its)?|not enough( good)?|fewer|insufficient) ([a-z-]{1,20} ){0,3}(PARTS)s?\b(?! (named|called|with|matching|specified|given|provided|supplied|configured|"|in (the |your )?(request|url|body|input|query)|[a-z]{1,20} (was|were) found|found (that|with|matching)))/,
  /FAILED (find|get|obtain) (any |an? )?(available|free|healthy|idle|live|active)/,
  /\b(available|healthy|idle|live|active) ([a-z-]{1,20} ){0,2}(PARTS)s? not found/,
  /\b(PARTS)s? (is|are|was|were) (inactive|absent|lagging)/,
  /\b(PARTS)s? (is|are|was|were|has|have|had)( not| no longer)( been)? (?!found|supported|implemented|valid|a valid|allowed|permitted|defined|empty|too|invalid|required|missing)/,
  /FAILED (find|locate|determine|acquire|elect|read from|write to|start|create|open|fork|allocate|check out) ([a-z-]{1,20} ){0,4}(PARTS|process|connection|memory)s?\b(?! (named|called|with|"))/,
  /(invalid|bad|failed( its| the)?( crc)?) checksum|authentication code (incorrect|mismatch)/,
  /\b(length|hash|sum|digest|checksum|size|epoch|state) mismatch|\binvalid connection\b/,
  /\bbad (record|handshake|gateway|connection|response|reply|packet)\b|\bwrong version number/,
  /(wrong|invalid|malformed|unexpected) (response|reply|answer)\b/,
  /unexpected end of (file|input|stream|data|json|archive)/,
  /\b(state|status|reason|result|cause|outcome|error|health)( of [a-z ]{1,30})?( is| are|:)? unknown\b(?! [a-z])/,
  /returned (an? )?(invalid|malformed)|(returned|got|received|gave) (an? )?(empty|blank|null|unknown)/,
  /\b(should|must|will|(has|have|needs?) to) be (available|back|ready|up|restarted|rebuilt|reconnected)/,
  /\bmax(imum)?( number of| allowed)? (concurrent|open|retries|retry|attempts|connections|clients|sessions|applications|processes|jobs|call stack|redirects)/,
  /(retries|retry|attempts?|stack size|overhead|flow control)( limit)? (reached|exceeded)/,
  /(should|must|can|may|needs? to) be (re-?tried|repeated|re-?sent|resubmitted|attempted again)/,
  /(already|currently|request|call) (in flight|running|under way)/,
  /\b(already|still|currently) ([a-z]{1,15} )?(attached|mounted|held|leased|in use by)\b/,
  /\b(locks|connections|threads|sessions|processes|requests) exceeds?\b/,
  /\b(lag|load|latency|pressure|utili[sz]ation|usage|backlog)( is)? too (high|long|large|deep)/,
  /in (recovery|a read-only|draining|standby|failover)\b|\b(buffer|system|disk) (space|storage)\b(?! quota)/,
);

/**
 * Short words that are a fault's only where nothing else is said: a network can be someone's, not only the one between
 * us.
 */
export const WEAK: RegExp = /\b(network|tls|ssl|dns|connection|socket)\b/;
