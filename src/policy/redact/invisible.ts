/** Any but printable ASCII and its white space: most texts have none, and cost one look. */
const UNUSUAL = /[^\t-\r -~]/;

/**
 * What a terminal obeys and nobody sees: sequences to their end, those that hold a text (a title, a link) with it.
 * Bounded, so that an unfinished one takes little along.
 */
const SEQUENCE =
  /(?:\u001b\[|\u009b)[0-?]{0,32}[ -/]{0,8}[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u0090\u0098\u009c-\u009f]{0,256}(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]{0,4}[0-~]/g;

/**
 * Control, format, direction and unassigned characters, halves of a pair, and all that Unicode says to show as nothing.
 * White space is not among them.
 */
const INVISIBLE = /(?![\t-\r\u0085])[\p{C}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * A text without terminal sequences and invisible characters: what was cut by them is whole again. Gives the same text
 * where there are none.
 */
export function visible(text: string): string {
  return UNUSUAL.test(text) ? text.replaceAll(SEQUENCE, '').replaceAll(INVISIBLE, '') : text;
}
