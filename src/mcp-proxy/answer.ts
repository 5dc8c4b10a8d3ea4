import { isRecord } from './message.ts';

/** How much of the text of an answer that is too long is passed on all the same. */
const HEAD_CHARS = 32_768;

const textsOf = (result: Readonly<Record<string, unknown>>): string => {
  const { content, structuredContent } = result;
  const parts = Array.isArray(content) ? (content as readonly unknown[]) : [];
  const text = parts.map((part) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('\n');
  return text.trim() === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : text;
};

/** A failure that a model reads; `resultType` is what results have since the protocol of 2026-07-28. */
export const failed = (text: string, isModern: boolean): unknown => ({
  content: [{ type: 'text', text }],
  isError: true,
  ...(isModern ? { resultType: 'complete' } : {}),
});

/**
 * A result that is no longer than allowed. One that is too long becomes a failure that says so, with the beginning of
 * its text: what is cut out of the middle of a structure, or of an image, is of no use to anybody.
 */
export function bounded(result: unknown, maxBytes: number, isModern: boolean): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(result));
  if (bytes <= maxBytes) return result;
  const head = isRecord(result) ? textsOf(result).slice(0, Math.min(HEAD_CHARS, maxBytes)).toWellFormed() : '';
  const said = `The tool ran. Its answer has ${bytes} bytes, and ${maxBytes} are passed on at most; ask for less.`;
  return failed(head.trim() === '' ? said : `${said} It begins:\n${head}`, isModern);
}
