import { read } from '../../errors/structure.ts';

/** Pages of a list that are read. */
const PAGES_MAX = 64;

type ListTools = (params: { cursor?: string } | undefined, options: { signal: AbortSignal }) => unknown;

/** What a page of a server's list holds; `undefined` where it is no such page. */
export const toolsOn = (page: unknown): readonly unknown[] | undefined => {
  const tools = read(page, 'tools');
  return Array.isArray(tools) ? tools : undefined;
};

/**
 * The tools that a server lists, page by page; ends early where `found` says so.
 *
 * @returns whether the list was read to its end
 * @throws what the client's `listTools` throws
 */
export async function readList(
  client: object,
  signal: AbortSignal,
  found: (tools: readonly unknown[]) => boolean,
): Promise<boolean> {
  const listTools = read(client, 'listTools');
  if (typeof listTools !== 'function') return false;
  let cursor: unknown;
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer: unknown = await Reflect.apply(listTools as ListTools, client, [
      typeof cursor === 'string' ? { cursor } : undefined,
      { signal },
    ]);
    const tools = toolsOn(answer);
    if (tools === undefined || found(tools)) return false;
    cursor = read(answer, 'nextCursor');
    if (cursor === undefined) return true;
  }
  return false;
}
