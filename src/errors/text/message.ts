import type { Sense } from './sense.ts';
import { QUOTA, REFILLS, UNAUTHORIZED } from './refusals.ts';
import { ROWS, type Row, type Speaker } from './words.ts';

/** Texts of wrappers, whose causes say more. */
const WRAPPED = /^(?:typeerror: )?(?:fetch failed|failed to fetch(?! [a-z]))|exception typeerror: fetch failed/;

/**
 * A name or value that a sentence quotes: `playlist "Network errors" not found`. After a colon or the like it is a
 * sentence of someone else, which may say more than the one around it.
 */
const QUOTED =
  /(?<![:={,([] ?|exceeded (?:the|your) )(?<![a-z\d])(?:"[^"\n]{1,60}"|'[^'\n]{1,60}'(?![a-z])|`[^`\n]{1,60}`)/g;
/** What a body of JSON calls a value: `"param":null` speaks of no parameter. */
const KEY = /(["'])(?!(?:error|message|response)\1)[\w-]{1,40}\1 ?:/g;
/** Addresses and paths are made of words that say nothing. */
const PLACE = /\bhttps?:\/\/[^\s"'<>)]{1,300}|(?<=[\s(]|^)\/[\w./-]{1,300}/g;

const senseOf = (text: string, rows: readonly Row[]): Sense | undefined => {
  const sense = rows.find(([, pattern]) => pattern.test(text))?.[0];
  return sense === 'quota_exhausted' && REFILLS.test(text) ? 'rate_limited' : sense;
};

/** What a sentence says itself, else with all it quotes. A code in it, `not_in_channel`, says the same as its words. */
const senseOfSentence = (sentence: string, rows: readonly Row[]): Sense | undefined => {
  const text = sentence.replaceAll(PLACE, '/x').replaceAll(KEY, ':');
  const forms = new Set([text.replaceAll(QUOTED, '"x"'), text, text.replaceAll('_', ' ')]);
  return [...forms].map((form) => senseOf(form, rows)).find((sense) => sense !== undefined);
};

/**
 * What a chain of messages says, outermost first; the first that says anything decides.
 *
 * @param texts in lower case
 */
export function senseOfText(texts: readonly string[], speaker: Speaker): Sense | undefined {
  for (const text of texts) {
    const sense = senseOfSentence(text, ROWS[speaker]);
    if (sense !== undefined && !(WRAPPED.test(text) && texts.length > 1)) return sense;
  }
  return texts.some((text) => WRAPPED.test(text)) ? 'lost' : undefined;
}

/** What a code or the name of a class says as words: `channel_not_found`, `ServiceUnavailableError`. */
export function senseOfWords(name: string, speaker: Speaker): Sense | undefined {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/[_\-./:]/g, ' ')
    .toLowerCase();
  return senseOf(words, ROWS[speaker]);
}

/** Why a request was refused, where its status says only that it was: never a reason to ask again. */
export function reasonOfRefusal(texts: readonly string[]): Sense | undefined {
  const text = texts.join('\n');
  if (QUOTA.test(text) && !REFILLS.test(text)) return 'quota_exhausted';
  return UNAUTHORIZED.test(text) ? 'unauthorized' : undefined;
}
