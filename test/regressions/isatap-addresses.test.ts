// Was: an IPv6 address of no public network passed the guard of REST targets if a public IPv4 address stood in its
// ISATAP part. Now: it is refused.
import { describe, expect, it } from 'vitest';
import { isToolExecutionError } from '../../src/contract/tool-error.ts';
import { targetGuard } from '../../src/providers/rest/target.ts';

const kindOf = (host: string): string | undefined => {
  try {
    targetGuard().check(new URL(`http://${host}/`));
    return undefined;
  } catch (error) {
    return isToolExecutionError(error) ? error.kind : String(error);
  }
};

describe('R-12.2 an IPv6 address of no public network, with a public IPv4 address in ISATAP’s place', () => {
  it.each([
    ['site-local', '[fec0::5efe:808:808]'],
    ['unassigned', '[::5efe:808:808]'],
    ['multicast', '[ff0e::5efe:808:808]'],
    ['documentation', '[2001:db8::200:5efe:808:808]'],
    ['NAT64 for local use, of which 127.0.0.94 is at the end', '[64:ff9b:1:7f00:0:5efe:808:808]'],
  ])('%s is refused', (_what, host) => {
    expect(kindOf(host)).toBe('not_permitted');
  });

  it('and one of a public network is not', () => {
    for (const host of ['[2606:4700::5efe:808:808]', '[64:ff9b::808:808]', '[2002:808:808::1]'])
      expect(kindOf(host), host).toBeUndefined();
  });
});
