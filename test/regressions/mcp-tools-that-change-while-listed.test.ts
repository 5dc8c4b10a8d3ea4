// Was: a change told while an MCP server's tools were being listed was lost, and a late answer replaced a newer one.
// Now: the latest list counts.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { mcpProvider, type McpConnection, type McpProvider } from '../../src/providers/mcp.ts';
import { failure, run, until } from '../providers/support.ts';

type Listing = Awaited<ReturnType<McpConnection['client']['listTools']>>;

const open: McpProvider[] = [];
afterEach(() => Promise.all(open.splice(0).map((each) => each.close())));

const listing = (...names: string[]): Listing => ({ tools: names.map((name) => ({ name })) });
const names = ({ tools }: McpProvider): string[] => tools.map(({ name }) => name);

/** A server of which only its list of tools is of interest. */
const provided = async (
  listTools: (change: () => void) => Promise<Listing>,
  callTool: () => Promise<unknown> = () => Promise.resolve({ content: [] }),
): Promise<{ provider: McpProvider; change: () => void }> => {
  let heard: (() => void) | undefined;
  const change = (): void => heard?.();
  const provider = await mcpProvider({
    name: 'box',
    connect: () =>
      Promise.resolve({
        client: { listTools: () => listTools(change), callTool },
        closed: new Promise(() => undefined),
        close: () => Promise.resolve(),
        toolsChanged: (tell) => (heard = tell),
      }),
  });
  open.push(provider);
  return { provider, change };
};

describe('tools that change while they are listed', () => {
  it('R-12.2 a change that is told during the first listing, or right behind it, is not lost', async () => {
    let listings = 0;
    const { provider } = await provided((change) => {
      if (listings++ > 0) return Promise.resolve(listing('early', 'late'));
      change();
      return Promise.resolve(listing('early'));
    });
    await until(() => names(provider).includes('box.late'));
    expect(listings).toBe(2);
  });

  it('R-12.2 an answer that a later one has overtaken does not count', async () => {
    let slow: ((answer: Listing) => void) | undefined;
    let listings = 0;
    const { provider, change } = await provided(
      () => {
        listings++;
        if (listings === 2) return new Promise((resolve) => (slow = resolve));
        return Promise.resolve(listings === 1 ? listing('old') : listing('old', 'new'));
      },
      () => Promise.reject(Object.assign(new Error('MCP error -32602: Tool old not found'), { code: -32_602 })),
    );
    // The refusal has the tools listed once more, and the change again, which is answered first.
    const refused = failure(run(provider, 'box.old', {}));
    await until(() => listings === 2);
    change();
    await until(() => names(provider).includes('box.new'));
    slow?.(listing());
    expect(await refused).toMatchObject({ uncertain: true });
    expect(names(provider)).toEqual(['box.old', 'box.new']);
  });

  it('R-12.2 a server that tells of a change whenever it is asked is asked now and then, and no more once it is closed', async () => {
    let listings = 0;
    const { provider } = await provided((change) => {
      listings++;
      change();
      return Promise.resolve(listing(`t${listings}`));
    });
    await until(() => listings > 2);
    expect(listings).toBeLessThan(10);
    await provider.close();
    const then = listings;
    await sleep(250);
    expect(listings).toBe(then);
  });
});
