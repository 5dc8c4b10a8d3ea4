import { visible } from '../policy/redact/invisible.ts';

/** Of a longer text nothing after this is looked at. */
const TEXT_LENGTH_MAX = 4096;

/**
 * A text from elsewhere as one harmless line: no terminal sequences, control, direction or invisible characters, no
 * line breaks. What a server says could otherwise forge lines of a log or drive the terminal.
 */
export function plain(text: string): string {
  // Most names and words are such.
  if (/^[!-~]{0,64}$/.test(text)) return text;
  return visible(text.slice(0, TEXT_LENGTH_MAX).toWellFormed())
    .replaceAll(/[\s\u0085]+/gu, ' ')
    .trim();
}
