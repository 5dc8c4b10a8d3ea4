/** What a path may be spelled with beside its letters: routers take these for the same. */
const decodedPath = (pathname: string): string => {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
};

/** The paths whose requests are conversations. */
export type ConversationPath = '/v1/messages' | '/v1/messages/count_tokens';

const PATHS: readonly string[] = ['/v1/messages', '/v1/messages/count_tokens'] satisfies readonly ConversationPath[];

const isConversation = (path: string): path is ConversationPath => PATHS.includes(path);

/**
 * The conversation's path that a router may read in a path: doubled and trailing slashes, letters of either case,
 * escapes. What an upstream may take for a conversation is checked and counted as one, however it is spelled.
 */
export function conversationPath(pathname: string): ConversationPath | undefined {
  // Dots are resolved anew: an escaped one was none when the address was read.
  const { pathname: resolved } = new URL(
    decodedPath(pathname)
      .replaceAll(/[/\\]+/g, '/')
      .replaceAll(/[?#]/g, '_'),
    'http://gateway',
  );
  const path = resolved
    .replaceAll(/\/+/g, '/')
    .replace(/(?<=.)\/$/, '')
    .toLowerCase();
  return isConversation(path) ? path : undefined;
}
