import { any } from './any.ts';

/**
 * How English says that an input does not do, whatever it is an input of: what it is to be, what it may not be, what it
 * lacks, how its parts go together. Asked after the faults of a service, which can be said in the same forms (`the
 * backup must finish first`).
 */
export const FORMS_OF_INPUT: RegExp = any(
  // What it lacks.
  /\bnot (been )?(provided|given|specified|supplied|set|filled in|selected|chosen|entered|granted|included)\b/,
  /\bno (?!details?|reason|cause|message)[a-z\d _-]{1,30} (provided|specified|given|supplied|set)( (for|in|to|by|on)\b|$|[^a-z ])/,
  /\bneither [^\n]{1,60} n?or [^\n]{1,60} (specified|provided|given|supplied|set|found)\b/,
  /(?<!\b(restart|retry|rejoin|reboot|recovery|repair|reconnect)) (is|are) needed\b/,
  // What it is to be, and is not.
  /\bneeds? to (be|have|contain|start|end|match|equal)\b/,
  /\brequires? (?!((an?|the|more|another) )?(restart|reboot|quorum|majority|leader|retry|time|memory|recovery|lock)\b)/,
  /(n't|\bnot|improperly) [^\n]{0,25}\b(correct|valid|proper|expected|required) (format|form|type|syntax|structure|length)/,
  /\bis an? [^\n]{1,30}\bnot\b|\bnot an? (?=\W)|\bnot (satisfiable|applicable|unique|whitelisted)\b|\bnon-?(numeric|string|unique)/,
  /\bundefined ([a-z]{1,20} ){0,2}(type|attribute|field|property|parameter|option|method|reference|key|label|name)\b/,
  /\b(is|are) (negative|zero|fractional|not positive)\b|\bbeyond (the )?(end|limit|bounds|range|maximum)\b|\btoo deep\b/,
  /\b(has|have|contains?|includes?) (an? )?(wildcards?|spaces?|white.?space|duplicates?|commas?|quotes?|control characters?)\b/,
  /\b(?!protocol|lease)[a-z]{2,20} violation\b|(could not|couldn't|can ?not|can't|unable to|failed to) decrypt\b/,
  // How its parts go together.
  /\b(can ?not|can't|may not|must not) (also |both |only )?(contain|include|specify|mix|combine|overlap|exceed)\b/,
  /\b(can ?not|can't|(?<!may or )may not|must not) (also |both )?(overwrite|override|redefine|rename|coerce|have|use)\b/,
  /\bcan only (be used|contain|have|include|specify)\b|\b(exactly|more than) (one|\d+) [a-z]/,
  /\b(has|have|contains?|got|given|provided|specified) too (many|few)\b|\btoo many [a-z]{1,20} in\b/,
  // What is not offered, or not to everyone.
  /\b(can ?not|can't|may not) (execute|perform|apply|call|invoke) [^\n]{1,40} on (this|that|these|those|an?) /,
  /\bonly (the |an? )?(?!(one|two|single|leader|primary|master|active)\b)([a-z]{1,20} ){1,6}(can|may)\b/,
  /\b(is|are|was|were|been) disabled\b|\bnot (been )?enabled\b|\bincompatible\b|\bsunset\b|\bend.of.life\b/,
  /\bnot (available|offered) (for|in|on|to|with) (this|your|the) (account|plan|project|version|region|tier|edition|platform)/,
  /\bthere (is|are|was|were) no [^\n]{1,40}(corresponding|matching|with|called|named)\b/,
);
