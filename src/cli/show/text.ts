import { fit } from '../../inspect/columns.ts';
import { plain } from '../../inspect/plain.ts';

export { choices, shownName } from '../../inspect/choices.ts';
export { columnsOf, fit, pad } from '../../inspect/columns.ts';
export { plain } from '../../inspect/plain.ts';
export { duration } from '../../inspect/text.ts';

/** Columns of a message on stderr: a rule, a value and a remedy fit; a name of 5,000 characters does not. */
const MESSAGE_COLUMNS_MAX = 600;

/** One line for a terminal: printable, and cut. */
export function messageLine(text: string): string {
  return fit(plain(text), MESSAGE_COLUMNS_MAX, '...');
}

/** A message of ours that may have several lines, each as `messageLine`. */
export function messageLines(text: string): string {
  return text
    .split('\n')
    .map((line) => /^\s*/.exec(line.slice(0, 16))?.[0] + messageLine(line))
    .join('\n');
}
