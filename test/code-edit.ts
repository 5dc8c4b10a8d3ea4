/**
 * A piece of code as it may stand in a source, however a formatter has set it: white space between its words does not
 * count, nor does a comma before a closing bracket.
 */
const pieceOf = (code: string): RegExp => {
  const words = code.match(/\w+|[^\s\w]/g) ?? [];
  const escaped = words.map((word) =>
    word.replaceAll(/[^\w]/g, String.raw`\$&`).replace(/^\\([)\]}])$/, String.raw`,?\s*\$1`),
  );
  return new RegExp(escaped.join(String.raw`\s*`), 'g');
};

/** In how many places of a source a piece of code stands. */
export const placesOf = (source: string, code: string): number => [...source.matchAll(pieceOf(code))].length;

/** The source with other code in the place of a piece of it. */
export const edited = (source: string, code: string, instead: string): string =>
  source.replace(pieceOf(code), () => instead);
