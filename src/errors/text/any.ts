/** What many patterns share, by a name in capitals: no text that is matched has any. */
const SHARED: Readonly<Record<string, string>> = {
  'BEEN ': '((is|are|was|were|has|have|been|got) ){0,2}',
  FAILED: '(could not|cannot|unable to|not able to|failed to|failure to)',
};

/** One pattern of several, so that a table can be read. */
export const any = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(
    patterns
      .map(({ source }) => source)
      .join('|')
      .replaceAll(/BEEN |FAILED/g, (name) => SHARED[name] ?? name),
  );
