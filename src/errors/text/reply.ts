/**
 * A reply of SMTP's or FTP's, `451 4.3.0 Try again`, `550 No such file`: its number is no status of HTTP. Without a code
 * of its own it stands where an error's text begins, and what follows is neither HTTP's reason (misdirected, upgrade,
 * unavailable for legal reasons, an origin's) nor what there are so many of.
 */
const replyOf = (first: 4 | 5, plain: string): RegExp =>
  new RegExp(
    `\\b${first}\\d\\d[ -]#?${first}\\.\\d\\.\\d{1,3}(?!\\d|\\.\\d)|` +
      '(^|(error|tool [\\w.-]{1,64}|failed|message|response)' +
      `[:*"]{1,4} ?)(${plain})[ -](?!<|(the )?origin|mis|upg|unav|` +
      '(is|was|not found|does|m?s|(client|server) error)\\b|(?!this)[a-z]{2,}[^s\\W]s\\b)',
  );

/** It may go otherwise the next time, whatever else it says. */
export const PASSING_REPLY: RegExp = replyOf(4, '42[156]|45[0-2]');
/** It will not. */
export const FINAL_REPLY: RegExp = replyOf(5, '5[35]\\d');
