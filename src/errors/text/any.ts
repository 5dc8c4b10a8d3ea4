/** What many patterns share, by a name in capitals: no text that is matched has any. */
const SHARED: Readonly<Record<string, string>> = {
  'BEEN ': '((is|are|was|were|has|have|been|got) ){0,2}',
  'WORDS ': '([a-z]{1,20} ){0,3}',
  FAILED: '(could not|cannot|unable to|not able to|failed to|failure to)',
  // What a service is made of: that one of these is not there, or not the right one, is a state of the service, and
  // none of what was asked for.
  PARTS:
    'server|node|worker|host|backend|broker|instance|endpoint|connection|machine|replica|slot|gpu|' +
    'leader|coordinator|controller|quorum|primary|master|sentinel|shard|partition|stream|socket|channel|pool|buffer|lock|thread|' +
    'handshake|resolver|peer|target|listener|responder|cluster|daemon|proxy|gateway',
  SETTINGS:
    'time.?out|time.?limit|deadline|rate.?limit|throttl(e|ing)|back.?off|' +
    'concurrency|keep.?alive|network|quota|retry|retries|dns|tls|ssl',
};

/** One pattern of several, so that a table can be read. */
export const any = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(
    patterns
      .map(({ source }) => source)
      .join('|')
      .replaceAll(/(BEEN|WORDS) |[A-Z]{5,}/g, (name) => SHARED[name] ?? name),
  );
