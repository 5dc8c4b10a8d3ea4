import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isToolExecutionError, type ToolExecutionError } from '../../../src/contract/tool-error.ts';
import { restProvider } from '../../../src/providers/rest.ts';
import { targetGuard, type TargetOptions } from '../../../src/providers/rest/target.ts';
import { classify } from '../../../src/policy/recovery/classify.ts';
import { json, oneTool, restServer, type RestServer } from './kit.ts';
import { failure } from '../support.ts';

let server: RestServer;
beforeAll(async () => {
  server = await restServer(json({ reached: true }));
});
afterAll(() => server[Symbol.asyncDispose]());

const refusal = (url: string, options?: TargetOptions): ToolExecutionError | undefined => {
  try {
    targetGuard(options).check(new URL(url));
    return undefined;
  } catch (error) {
    if (isToolExecutionError(error)) return error;
    throw error;
  }
};

describe('R-12.2 SSRF: an address is refused', () => {
  it.each<[string, readonly string[]]>([
    ['loopback', ['127.0.0.1', '127.255.255.254', '[::1]']],
    [
      'loopback in other spellings',
      [
        '2130706433',
        '0x7f000001',
        '0x7f.0.0.1',
        '0177.0.0.1',
        '017700000001',
        '127.1',
        '127.0.1',
        '127.0.0.1.',
        '①②⑦.⓪.⓪.①',
        '127。0。0。1',
        '%31%32%37.0.0.1',
      ],
    ],
    [
      'loopback in IPv6',
      ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:7f00:0001]', '[::127.0.0.1]', '[::ffff:0:127.0.0.1]'],
    ],
    [
      'private',
      [
        '10.0.0.1',
        '172.16.0.1',
        '172.31.255.255',
        '192.168.1.1',
        '0xa.1',
        '167772161',
        '[fd12:3456::1]',
        '[fc00::1]',
        '[fec0::1]',
        '[::ffff:10.0.0.1]',
      ],
    ],
    [
      'link-local, cloud metadata',
      [
        '169.254.169.254',
        '2852039166',
        '0xa9fea9fe',
        '0251.0376.0251.0376',
        '[::ffff:169.254.169.254]',
        '[fe80::1]',
        '[fd00:ec2::254]',
        '100.100.100.200',
        '168.63.129.16',
        '192.0.0.192',
      ],
    ],
    ['unspecified', ['0.0.0.0', '0', '0x0', '[::]', '0.1.2.3']],
    [
      'carrier, multicast, broadcast, reserved, documentation',
      [
        '100.64.0.1',
        '224.0.0.1',
        '239.255.255.255',
        '255.255.255.255',
        '240.0.0.1',
        '192.0.2.1',
        '198.51.100.1',
        '203.0.113.1',
        '198.18.0.1',
        '[ff02::1]',
        '[2001:db8::1]',
        '[100::1]',
        '[4000::1]',
      ],
    ],
    [
      'NAT64, 6to4, Teredo and ISATAP around such',
      [
        '[64:ff9b::127.0.0.1]',
        '[64:ff9b::a00:1]',
        '[64:ff9b:1::1]',
        '[2002:7f00:1::]',
        '[2002:a9fe:a9fe::1]',
        '[2001:0:a00:1::1]',
        '[2001:0:808:808:0:0:80ff:fffe]',
        '[2606:4700::5efe:10.0.0.1]',
        '[2606:4700::200:5efe:10.0.0.1]',
      ],
    ],
  ])('%s', (_what, hosts) => {
    for (const host of hosts) {
      for (const scheme of ['http', 'https']) {
        const error = refusal(`${scheme}://${host}:8080/x`);
        expect(error, host).toMatchObject({ kind: 'not_permitted', executed: false, uncertain: false });
        expect(error?.message).toMatch(
          /^The target .* is an? .*; add .* to the option allow|the (unspecified|broadcast) address/,
        );
        if (error !== undefined) expect(classify(error).classification).toBe('permanent');
      }
    }
  });

  it('and a public one is not', () => {
    for (const host of [
      '8.8.8.8',
      '1.1.1.1',
      '172.32.0.1',
      '[2606:4700:4700::1111]',
      '[::ffff:8.8.8.8]',
      '[64:ff9b::8.8.8.8]',
      '[2002:808:808::1]',
      'example.com',
    ])
      expect(refusal(`https://${host}/`), host).toBeUndefined();
  });

  it('whatever the scheme and the user', () => {
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.com/',
      'gopher://example.com/',
      'data:text/plain,x',
      'javascript:1',
      'ws://example.com/',
    ])
      expect(refusal(url)?.message).toMatch(/^Requests go to http: and https: only, not to /);
    for (const url of ['http://u@example.com', 'http://:p@example.com', 'https://8.8.8.8:80@127.0.0.1/'])
      expect(refusal(url)).toMatchObject({
        kind: 'not_permitted',
        message: 'The target has a user or a password in its URL; send them in a header',
      });
  });
});

describe('R-12.2 SSRF: a name is refused', () => {
  const called = (addresses: readonly string[], allow: readonly string[] = []): Promise<unknown> =>
    oneTool(`http://api.example.com:${server.port}`, {}, { lookup: () => Promise.resolve(addresses), allow }).call();
  it.each<[string, readonly string[]]>([
    ['a private address', ['10.0.0.1']],
    ['loopback', ['127.0.0.1']],
    ['loopback in IPv6', ['::1']],
    ['a mapped one', ['::ffff:127.0.0.1']],
    ['cloud metadata', ['169.254.169.254']],
    ['a link-local address with a zone', ['fe80::1%eth0']],
    ['a public address and a private one', ['8.8.8.8', '192.168.0.1']],
    ['no address', ['not an address']],
    ['an octal one', ['0177.0.0.1']],
  ])('that resolves to %s', async (_what, addresses) => {
    const before = server.connections.made;
    expect(await failure(called(addresses))).toMatchObject({
      kind: 'not_permitted',
      executed: false,
      uncertain: false,
    });
    expect(server.connections.made).toBe(before);
  });

  it('localhost, by the system’s own resolver', async () => {
    expect(await failure(oneTool(`http://localhost:${server.port}`, {}, { allow: [] }).call())).toMatchObject({
      kind: 'not_permitted',
      executed: false,
    });
  });

  it('and DNS rebinding gains nothing: a name is resolved once a connection, and that address is used', async () => {
    const answers = [['127.0.0.1'], ['10.9.9.9']];
    let lookups = 0;
    await using tool = oneTool(
      `http://rebind.example.com:${server.port}`,
      {},
      { lookup: () => Promise.resolve(answers[lookups++] ?? []), allow: ['127.0.0.0/8'] },
    );
    expect(await tool.call()).toEqual({ reached: true });
    expect(lookups).toBe(1);
    // The connection is kept: it is the one that was checked.
    expect(await tool.call()).toEqual({ reached: true });
    expect(lookups).toBe(1);
    server.answer((_request, response) => void response.writeHead(200, { connection: 'close' }).end());
    await tool.call();
    server.answer(json({ reached: true }));
    expect(await failure(tool.call())).toMatchObject({ kind: 'not_permitted', executed: false });
    expect(lookups).toBe(2);
  });

  it('though its name is allowed for another port', async () => {
    expect(await failure(called(['127.0.0.1'], ['api.example.com:1']))).toMatchObject({ kind: 'not_permitted' });
    expect(await called(['127.0.0.1'], [`API.example.com.:${server.port}`])).toEqual({ reached: true });
  });
});

describe('R-12.2 allow', () => {
  it.each<[string, string, boolean]>([
    ['127.0.0.1', 'http://127.0.0.1:8080', true],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080', true],
    ['127.0.0.1:8080', 'http://127.0.0.1:8081', false],
    ['127.1', 'http://2130706433', true],
    ['10.0.0.0/8', 'http://10.200.0.1', true],
    ['10.0.0.0/8', 'http://11.0.0.1', true],
    ['10.0.0.0/8', 'http://192.168.0.1', false],
    ['10.0.0.0/8', 'http://[::ffff:10.0.0.1]', true],
    ['::1', 'http://[::1]:9', true],
    ['[::1]:80', 'http://[::1]', true],
    ['[::1]:443', 'http://[::1]', false],
    ['[::1]:443', 'https://[::1]', true],
    ['fd00::/8', 'http://[fd12::1]', true],
    ['localhost', 'http://127.0.0.1', false],
  ])('%s lets through %s: %s', (allow, url, through) => {
    expect(refusal(url, { allow: [allow] }) === undefined).toBe(through);
  });

  it('that cannot be read is a RangeError', () => {
    for (const entry of ['http://x', 'a/b', 'a:99999', '10.0.0.0/99', '', 'a b', 'u@h', 'x?y'])
      expect(() => targetGuard({ allow: [entry] }), entry).toThrow(
        /^allow must hold hosts \(api\.internal\), hosts with a port .* or ranges .*, not "/,
      );
    expect(() =>
      restProvider(
        { name: 'a', base_url: 'https://a.example', tools: [{ id: 't', url: '/' }] },
        { allow: 'x' as never },
      ),
    ).toThrow(/^allow must be a list/);
  });
});
