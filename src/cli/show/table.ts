import { columnsOf, fit, pad, plain } from './text.ts';

const GAP = '  ';

export interface TableOptions {
  /** The columns of the terminal: the last column of the table is cut to what is left of them. Default: no limit. */
  readonly columns?: number;
  /** The widest that another column may get. Default 48. */
  readonly columnMax?: number;
  readonly ellipsis?: string;
  /** Colours a cell, padded as it is. */
  readonly paint?: (row: number, column: number, text: string) => string;
}

/**
 * Lines of a table, its head first. Cells may come from a server or a file: none drives the terminal or forges a line
 * (R-15.2).
 */
export function table(
  head: readonly string[],
  rows: ReadonlyArray<readonly string[]>,
  options: TableOptions = {},
): string[] {
  const { columns = Infinity, columnMax = 48, ellipsis = '...', paint = (_row, _column, text) => text } = options;
  const last = head.length - 1;
  const cells = [
    head,
    ...rows.map((row) =>
      row.map((cell, index) => (index === last ? plain(cell) : fit(plain(cell), columnMax, ellipsis))),
    ),
  ];
  const widths = head.map((_, index) => cells.reduce((most, row) => Math.max(most, columnsOf(row[index] ?? '')), 0));
  const besides = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
  const room = columns === Infinity ? columnMax : Math.max(12, columns - besides);
  return cells.map((row, place) => {
    const line = row.map((cell, index) =>
      paint(place - 1, index, index === last ? fit(cell, room, ellipsis) : pad(cell, widths[index] ?? 0)),
    );
    return line.join(GAP).trimEnd();
  });
}
