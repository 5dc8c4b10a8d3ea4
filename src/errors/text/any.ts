/** One pattern of several, so that a table can be read. */
export const any = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join('|'));
