import { any } from './any.ts';

/** A quota counted by the minute, or one with a wait, fills again: it is a rate limit. */
export const REFILLS: RegExp = /\b(per|this|each)[ _-]?(second|minute|hour|min)\b|(retry|try again) (in|after) \d/;

export const UNAUTHORIZED: RegExp = any(
  // A service of authentication can fail like any other.
  /(un|not )authori[sz]ed|authori[sz]ation (failed|failure|error|required|violation|denied)/,
  /authenticat(ion|e)(?! (service|server|provider|backend|endpoint)s? )/,
  /(log.?in|log.?on|sign.?in) (failed|failure|denied|rejected|incorrect)/,
  /\bno ([a-z]{1,12} ){0,2}(permission|privilege)s?\b|(access|permission)[ _]?denied|permission.?error|forbidden/,
  /(no|not enough|insufficient) (permission|rights\b|scope|privilege)/,
  /do(es)?( not|n't) have (permission|access)|(log|sign) ?in (again|required|first|to continue)/,
  /(not|need to|must|please) (logged|sign(ed)?|log) in|\bnot the (owner|author|creator)\b|\bno access to/,
  /(invalid|incorrect|missing|bad|wrong|expired|revoked)[ _](x-)?(api[ _-]?key|credential|(access |auth |bearer )?token|access key|password|username|subscription key|signature|jwt)/,
  /api[ _-]?key (is |was |has )?(been )?(not (valid|found)|invalid|missing|required|expired|disabled|revoked)/,
  /no api[ _-]?key|(no|missing)( [a-z]{1,12})? credentials/,
  /(could not|couldn't|unable to|failed to) (load|locate|find|resolve) ([a-z]{1,12} ){0,3}credentials/,
  /credentials (were |are )?not (found|provided|set|configured|available)/,
  /\b(token|session|jwt|credentials?|password|login)( (provided|included in the request))? (is |has |have |was )?(been )?(expired|revoked|invalid|malformed)/,
  /expired.?token/,
  /\b(token|session|credentials?|login|api key)[^\n.:;]{0,40} (has|have|is|was|were) (been )?(expired|revoked)/,
  /signature (verification|mismatch|is invalid|does( not|n't) match)/,
  /account (is |has been |was )?(suspended|deactivated|disabled|banned|locked|frozen|closed)/,
);

export const QUOTA: RegExp = any(
  /insufficient[ _](quota|balance|credit|fund)/,
  /(balance|funds|credits?) (is |are )?(insufficient|too low|exhausted|depleted|used up)/,
  /out of (quota|credits|tokens|funds)|\btop up\b|credit balance/,
  /quota_?exceeded|exceed(ed|s|ing)? (your |the |its )?([a-z]{1,20} )?quota/,
  /quota (has been |is )?(exceeded|exhausted|reached|depleted|used up)/,
  /(no|not enough|used (up )?all)( [a-z]{1,20}){0,2} (credits|quota)/,
  /(usage|spend(ing)?|monthly|daily|weekly) limit (has been |was |is )?(reached|exceeded|hit)/,
  /exceed(ed|s|ing)? (your |the |its )?(usage|spend(ing)?|monthly|daily|weekly) limit/,
  /(subscription|license|licence|plan|trial)( period)? (has |is |was )?(been )?(expired|inactive|cancell?ed|over|ended|lapsed)/,
  /upgrade (to|your|the) |(plan|account|free.?tier) limit/,
  /payment[ _]required|\bbilling\b(?! (service|server|api|address))|card (was |is |has )?(declined|expired)/,
  /reached (your|the|its) ([a-z]{1,12} )?quota/,
);
