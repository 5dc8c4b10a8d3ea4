import { any } from './any.ts';

/** What a service says `not` and `cannot` of when it is the service that fails, whatever it was asked. */
const WORK = [
  'reached|contacted|established|connected|accessed|opened|loaded|read|written|sent|delivered|resolved|found',
  'processed|completed|fulfilled|served|handled|performed|executed|done|started|launched|created|scheduled|allocated',
  'acquired|obtained|retrieved|fetched|downloaded|saved|stored|persisted|committed|replicated|satisfied|guaranteed',
  'verified|confirmed|determined|locked|reserved|elected|recovered|restored|mounted|achieved|met',
].join('|');

/**
 * How English says that an input does not do, whatever it is an input of: what it lacks, what it is to be and is not,
 * how its parts go together, what is not offered. Asked after the faults of a service, which can be said in the same
 * forms: `the backup must finish first`.
 */
export const FORMS_OF_INPUT: RegExp = any(
  // What it lacks.
  /\bnot (been )?(provided|given|specified|supplied|set|filled in|selected|chosen|entered|granted|included)\b/,
  /\bno (?!details?|reason|cause|message)[a-z\d _-]{1,30} (provided|specified|given|supplied|set|selected)( (for|in|to|by|on)\b|$|[^a-z ])/,
  /\bno [a-z\d ]{1,30} configured\b/,
  /\bno [a-z ]{0,20}(entry|record|row|item|element|document|object) (at|for|with|of|under)\b/,
  /\bneither [^\n]{1,60} n?or [^\n]{1,60} (specified|provided|given|supplied|set|found)\b/,
  /(?<!\b(restart|retry|rejoin|reboot|recovery|repair|reconnect)) (is|are) needed\b|\bnot existing\b/,
  /\bthere (is|are|was|were) no [^\n]{1,40}(corresponding|matching|with|called|named)\b/,
  /\b(has|have) no ([a-z]{1,20}_[a-z]|([a-z-]{1,20} ){0,3}(key|field|attribute|property|column|permission|role|id|value|name)\b)/,
  /(^|[:"*>\]] ?)empty (?![^\n]{0,30}(reply|response|answer|result))[a-z]/,
  /(?<!(data|more|response|reply)) (was|were) (un)?expected\b/,
  /\bwithout (specifying|providing|setting|giving)\b/,
  /\bno (?!data|response|reply|answer|result)[a-z]{1,20} (was|were) (uploaded|passed|attached)/,
  /\b(value|text|string|number) (was )?(given|passed|provided|supplied) for\b|\blimit(ed)? (up )?to \d/,
  /\bno [a-z ]{1,30} (specified|given|provided|supplied) ([a-z]{1,12} )?(id|name|key|number|code|address|email)\b/,
  /\bexceed(ed|ing)? [^\n]{0,30}\b(size|length|space|storage|count|depth)\b/,
  /\btoo many [a-z ]{1,20} (provided|given|specified|supplied|passed)\b/,
  // What it is to be, and is not.
  /\byou (can ?not|can't|may not|must|need to|have to) (?!(wait|retry|try|reconnect|restart)\b)|\bimmutable\b/,
  /\bneeds? to (be|have|contain|start|end|match|equal)\b|\bexpecting (?!value)[a-z\d"'`<[]/,
  /\brequires? (?!((an?|the|more|another) )?(restart|reboot|quorum|majority|leader|retry|time|memory|recovery|lock|connection|network)\b)/,
  /(n't|\bnot|improperly) [^\n]{0,25}\b(correct|valid|proper|expected|required) (format|form|type|syntax|structure|length)/,
  /\bis an? [^\n]{1,30}\bnot\b|\bnot an? (?=\W)|\bnot (satisfiable|applicable|unique|whitelisted|compatible)\b/,
  /\bnot ([a-z]{1,10}-)?(search|sort|filter|edit|modifi|deliver|boot|mount|null|serializ|compar|iter|call|assign|hash|mut|execut)able\b/,
  /\b(is|are) (negative|zero|fractional|not positive)\b|\bbeyond (the )?(end|limit|bounds|range|maximum)\b/,
  /\btoo deep\b/,
  /\b(has|have|contains?|includes?) (an? )?(wildcards?|spaces?|white.?space|duplicates?|commas?|quotes?|control characters?)\b/,
  /\b(?!protocol|lease)[a-z]{2,20} violation\b|(could not|couldn't|can ?not|can't|unable to|failed to) decrypt\b/,
  /\breserved (word|name|column|keyword|id|identifier|character)s?\b/,
  /\bread-?only (field|property|attribute|column|value)/,
  /\b(integer|numeric|arithmetic) overflow\b|\b(circular|cyclic) (reference|dependency)\b/,
  /\b(date|day|birth|time)[^\n]{0,20} (is in the future|precedes|follows)\b/,
  /\b(specified|requested) [a-z ]{1,20} (is|was) not present\b/,
  /\b(parameter|argument|parse|parsing|type|format) error\b/,
  /\b(do|does)( not|n't) (accept (?!(new )?connections)|represent|apply|qualify|correspond|equal|start|end|satisfy|meet|comply|implement|recogni[sz]e)\b/,
  /\bnegative (size|length|value|number|amount|offset|count|index|quantity|price)\b|\bnot match(ed|ing)?\b|\bin-use\b/,
  /\bundefined (?!behaviou?r|error|state|reason)[a-z]|\b(declared|defined|specified|given) (multiple times|more than once|twice)\b/,
  /\bis not present in\b|\bmax [a-z ]{1,20} is \d/,
  // How its parts go together.
  /\b(can ?not|can't|may not|must not) (also |both |only )?(contain|include|specify|mix|combine|overlap|exceed|define)\b/,
  /\b(can ?not|can't|(?<!may or )may not|must not) (also |both )?(overwrite|override|redefine|rename|coerce|have|use|provide)\b/,
  new RegExp(`\\bcan(not| not|'t) be (?!${WORK})[a-z]{3,20}(ed|en|nt)\\b`),
  /\bcan(not| not|'t) be [a-z]{3,20} (together|at the same time)\b/,
  /\bcan only (?![^\n]{0,80}\b(leader|primary|master|replica|node|server|connection)\b)[a-z]/,
  /\b(exactly|more than) (one|\d+) [a-z]|\b(provided|given|specified|passed) both\b/,
  /\b(has|have|contains?|got|given|provided|specified) too (many|few)\b|\btoo many [a-z]{1,20} in\b/,
  /\bconflicting ([a-z]{1,15} )?(option|argument|param|setting|value|mode|type|name|definition|flag|header|field)s?/,
  /(\bnot|n't) equal\b|\bare (the same|identical)\b/,
  /\bnot both\b|\b(can ?not|can't|may not) [a-z]{2,12} (both|multiple|two)\b|\b(may|must) (only be|contain only) [a-z]/,
  /\b(can ?not|can't|may not) (add|apply|assign|attach|associate|append) [^\n]{1,30} (to|with) an? [a-z]/,
  // What is not offered, or not to everyone.
  /\bonly available (for|in|on|with)\b|\bcan be used only\b/,
  /\b(can ?not|can't|may not) (delete|remove) (the )?(root|default|last|only|owner|built.?in|system)\b/,
  /\b(sufficient|necessary|required|proper) (permission|privilege|right|access|role)|\bwas flagged\b/,
  /\byou need [a-z ]{0,20}(permission|privilege|right|access|role|licen[cs]e|subscription)/,
  /\bunlicen[sc]ed\b/,
  /\b(is|are|was|were|been) disabled\b(?! (during|while|until))|\bnot (been )?enabled\b|\bincompatible\b|\bsunset\b|\bend.of.life\b/,
  /\bnot (available|offered) (for|in|on|to|with) (this|your|the) (account|plan|project|version|region|tier|edition|platform)/,
  /n't (be )?(allowed|permitted)\b|\bdenies\b|\bsupported only\b/,
  /\bonly (valid|applicable|allowed|permitted|accepted)\b/,
  /\bonly [^\n.]{1,80} (is|are) (supported|allowed|accepted|valid)\b|\bnot (yet |currently )(supported|implemented)\b/,
  /\b(can ?not|can't|may not) (execute|perform|apply|call|invoke) [^\n]{1,40} on (this|that|these|those|an?) /,
  /\b(can ?not|can't|may not) (edit|modify|alter)\b/,
  /\b(can ?not|can't|may not) [a-z]{2,12} [^\n]{1,30}(for|of|to) (other|another|someone)/,
  /\bonly (the |an? )?(?!(one|two|single|leader|primary|master|active)\b)([a-z]{1,20} ){1,6}(can|may)\b/,
);
