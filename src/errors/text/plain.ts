/** Text is matched on this many of its first characters. */
export const TEXT_LENGTH_MAX = 4096;

/**
 * Text is kept up to this length. A trace shows half of it: a secret on the edge of what is shown is seen whole by what
 * takes it out.
 */
export const MESSAGE_LENGTH_MAX: number = 2 * TEXT_LENGTH_MAX;

/** What is not plain already. */
const ODD = /[^\n -~]| {2}|n't|can not/;

/**
 * A text as the tables have it: in lower case, with plain quotes, one space where there is any white space in a line,
 * and a whole `not`. What is written in wide letters, or with invisible characters between them, says the same.
 */
export function plainText(text: string): string {
  const lower = text.trim().toLowerCase();
  if (!ODD.test(lower)) return lower;
  return lower
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/[^\S\n]+/g, ' ')
    .replaceAll('’', "'")
    .replaceAll(/[“”]/g, '"')
    .replaceAll(/\bcan(?:'t| not)\b/g, 'cannot')
    .replaceAll(/n't\b/g, ' not')
    .slice(0, TEXT_LENGTH_MAX);
}
