import { any } from './any.ts';

/** Stems of what a service says `not` and `cannot` of when it is the service that fails, whatever it was asked. */
const WORK = [
  'reach|contact|establish|connect|access|open|load|read|writ|sen[dt]|deliver|resol|f[io]u?nd|finish|complet|continu',
  'process|fulfil|serv|handl|perform|execut|do(ne)?\\b|start(?! with)|launch|creat|schedul|allocat|proceed|initiali',
  'acquir|obtain|get\\b|retriev|fetch|download|sav|stor|persist|commit|replicat|satisf|guarante|receiv|respon|accept',
  'verif|confirm|determin|lock|reserv|elect|recover|restor|mount|achiev|me?et|join|keep|communicat|fork|spawn|bind',
  'flush|(at|de)tach|renew|tell\\b|refresh|rebalanc|resum|promot|sync|assign req|currently',
].join('|');
/**
 * Any other verb, or what something is to be, is refused: `cannot share a name`, `cannot be blank`. A colon says why:
 * `cannot delete: in use`; what passes is no refusal: `cannot search while it is being rebuilt`.
 */
const REFUSED = `(be (?!${WORK})[a-z\\d]|(?!be |${WORK})[a-z\\d]+\\b(?!:))(?!.* (being|until) )`;

/**
 * How English says that an input does not do, whatever it is an input of: what it lacks, what it is to be and is not,
 * how its parts go together, what is not offered. Asked after the faults of a service, which can be said in the same
 * forms: `the backup must finish first`.
 */
export const FORMS_OF_INPUT: RegExp = any(
  // What it lacks.
  /\bnot (been )?(provided|given|specified|supplied|set|filled in|selected|chosen|entered|granted|included)\b/,
  /\bno (?!details?|reason|cause|message|data|response|reply|answer|result)[a-z\d _-]{1,30} (provided|specified|given|supplied|set|selected|uploaded|passed|attached)( (for|in|to|by|on)\b| ([a-z]{1,12} )?(id|name|key|number|code|address|email)\b|$|[^a-z ])/,
  /\bnot exist(s|ing)?\b|\bno [a-z ]{0,20}(entry|record|row|item|element|document|object) (at|for|with|of|under)\b/,
  /(?<!\b(restart|retry|rejoin|reboot|recovery|repair|reconnect)) (is|are) needed\b/,
  /\b(has|have) no ([a-z]{1,20}_[a-z]|([a-z-]{1,20} ){0,3}(key|field|attribute|property|column|permission|role|id|value|name|option|claim|header)s?\b)/,
  /(^|[:"*>\]] ?)empty (?!.{0,30}(reply|response|answer|result))[a-z]/,
  /(?<!(data|more|response|reply)) (was|were) (un)?expected\b/,
  /\bwithout (specifying|providing|setting|giving|[a-z \d]{1,20} (enabled|configured|set|specified)\b)/,
  /\blimit(ed)? (up )?to \d/,
  /\bexceed(ed|ing)? .{0,30}\b(size|length|space|storage|count|depth)\b/,
  // Of what was given, where it is not the service that has too much to do.
  /\btoo many (?!((write|read) |active|running|redirect|retr|attempt|fail|error|process|thread|job|task|call|worker|client|socket|segment|times|in.?flight|.{0,40} (in progress|outstanding|per (second|minute|hour))))[a-z]/,
  // What it is to be, and is not.
  /\byou (cannot|may not|must|need to|have to) (?!(wait|retry|try|reconnect|restart)\b)|\bimmutable\b/,
  /\bneeds? to (be|have|contain|start|end|match|equal)\b|\bexpecting (?!value)[a-z\d"'`<[]/,
  /\brequires? (?!((an?|the|more|another) )?(restart|reboot|quorum|majority|leader|retry|time|memory|recovery|lock|connection|network)\b)/,
  /\bnot an? (?=\W)/,
  /\bnot ([a-z]+ capable|of type|understood|enrolled|satisfiable|applicable|unique|whitelisted|compatible)\b/,
  /\bnot ([a-z]{1,10}-)?(?!avail|reach|st|recover|read|writ|resolv|refund|us|work|oper|schedul|ping|interact|click|attach)[a-z]{2,20}able\b/,
  /\b(is|are) (negative|zero|fractional|not positive)\b|\bbeyond (the )?(end|limit|bounds|range|maximum)\b/,
  /\b(too deep|excessive (size|length|dim))|\brefus(es|ing) to (?!connect|serve|accept)|\brefused by\b/,
  /\b(has|have|contains?|includes?) (an? )?(wildcard|(white.?)?space)/,
  /\b(?!protocol|lease|isolation)[a-z]{2,20} violation\b|FAILED decrypt\b/,
  /\bis reserved\b/,
  /\b(param(eter)?s?|argument|parse|parsing|type|format) (error|check|verif)/,
  /\bnegative (size|length|number|amount|count|index)\b|\bnot match(ed|ing)?\b|\bin-use\b/,
  /\bundefined (?!behaviou?r|error|state|reason)[a-z]/,
  /\b(declared|defined|specified) (multiple|more|twice)/,
  /\b(is|are|was|were) not present\b|\bmax [a-z ]{1,20} is \d/,
  // How its parts go together.
  new RegExp(`\\bcannot ${REFUSED}|(?<!may or )may not (?!have|exist|reflect)${REFUSED}`),
  /\b(can|may) (contain )?only (?!.{0,80}\b(leader|primary|master|replica|node|server|connection)\b)[a-z]/,
  /\b(exactly|more than) (one|\d+) [a-z]|\b(provided|given|specified|passed|contains?|set) both\b/,
  /\bconflicting ([a-z]{1,15} )?(option|argument|param|setting|value|type|name|field)/,
  /\bnot equal\b|\bare (the same|identical)\b/,
  /\bnot both\b|\bbut (is|was|got|found) an? |\bor (newer|later|higher|above)\b/,
  /\bno (supported|compatible|acceptable|valid|known) [a-z]/,
  // What is not offered, or not to everyone.
  /\bonly ([a-z]+ ){0,2}(for|in|on|with|if|when)\b|\bsupports? (.{1,30} only|up to)\b/,
  /\bto this (user|recipient|channel|account)\b|\bwas flagged\b/,
  /\bneeds? WORDS (permission|privilege|right|access|role|licen[cs]e|subscription|plan)\b/,
  /\bunlicen[sc]ed\b|\bno WORDS (account|subscription|licen[cs]e)s?\b/,
  /\b(you|user|account|client|role|caller)( "x")? may not\b|\binactive\b/,
  /(?<!currently )\bdisabled\b(?! (during|while|until))|\bnot (been )?(enabled|activated)\b|\bincompa[tr][ai]ble\b/,
  /\bnot (available|offered) (for|in|on|to|with) ((this|your|the) )?(account|plan|project|version|region|tier|edition|platform|user|team|workspace|customer|product|country|model|currency)/,
  /\bdenies\b/,
  /\bonly [^\n.]{1,80} ((is|are) (supported|allowed|accepted|valid)|can be (?!reach))\b/,
  /\bnot (yet |currently )(supported|implemented)\b/,
  /\b(cannot|may not) [a-z]{2,12} .{1,40} (using|where|on (this|that|these|those|an?)|(for|of|to) (an?|other|another|someone))\b/,
  /\bonly (the |an? )?(?!(one|two|single|leader|primary|master|active)\b)([a-z]{1,20} ){1,6}(can|may)\b/,
);
