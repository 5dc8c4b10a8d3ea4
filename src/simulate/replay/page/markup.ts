import { plain } from '../../../inspect/plain.ts';
import { escaped } from '../../charts.ts';

/** A text from elsewhere in a page: one line, nothing of which is markup. */
export const words = (text: string): string => escaped(plain(text));

/** A row of a table, whose first cell is its heading. */
export const row = (cells: readonly string[], tag: 'th' | 'td' = 'td', attributes = ''): string => {
  const [first = '', ...rest] = cells;
  const scope = tag === 'th' ? 'col' : 'row';
  const others = rest.map((cell) => (tag === 'th' ? `<th scope="col">${cell}</th>` : `<td>${cell}</td>`));
  const heading = first === '' ? '<td></td>' : `<th scope="${scope}">${first}</th>`;
  return `<tr${attributes}>${heading}${others.join('')}</tr>`;
};

/** A table of rows. */
export const table = (head: readonly string[], rows: readonly string[], attributes = ''): string =>
  `<table${attributes}><thead>${row(head, 'th')}</thead><tbody>${rows.join('')}</tbody></table>`;
