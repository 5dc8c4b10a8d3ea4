// Was: foreign patterns ran by backtracking behind a guess; one text stopped all. Now: an automaton, in linear time.
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { createSpillway } from 'spillway';
import { describe, expect, it } from 'vitest';
import { compileJsonSchema } from '../../src/policy/json-schema.ts';
import { linearPattern } from '../../src/policy/pattern/linear-pattern.ts';
import { mcpInput } from '../../src/providers/mcp/input.ts';
import { mcpStdioProvider } from '../../src/providers/mcp-stdio.ts';
import { readRestManifest, restProvider } from '../../src/providers/rest.ts';
import { routerProvider } from '../../src/providers/router.ts';

const LENGTH = 100_000;
const repeated = (part: string, length = LENGTH): string =>
  part.repeat(Math.ceil(length / part.length)).slice(0, length);
/** Letters without any order, the same ones each time. */
const mixed = (length = LENGTH): string => {
  let state = 12_345;
  return Array.from({ length }, () => ((state = (state * 1_103_515_245 + 12_345) % 2 ** 31) & 65_536 ? 'a' : 'b')).join(
    '',
  );
};
const foreign = (length = LENGTH): string =>
  Array.from({ length }, (_, index) => String.fromCodePoint(0x4e00 + (index % 20_000))).join('');

/** The least time of the processor that it takes, which others may keep busy. */
const cpuMs = (work: () => unknown): number =>
  Math.min(
    ...Array.from({ length: 3 }, () => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    }),
  );

/** Patterns that backtracking takes exponential or polynomial time for, and a text for which it does. */
const HOSTILE: ReadonlyArray<readonly [pattern: string, text: string]> = [
  ['^(a+)+$', `${repeated('a')}!`],
  ['^(a{1,9}){1,30}$', `${repeated('a')}!`],
  ['^(?:a?a?)*b', repeated('a')],
  ['a*a*a*a*a*b', repeated('a')],
  ['^(a|a)*$', `${repeated('a')}!`],
  ['^(a|aa)+$', `${repeated('a')}!`],
  ['^([a-z]*)*$', `${repeated('ab')}!`],
  ['(x+x+)+y', repeated('x')],
  ['[a-z]+@', repeated('a')],
  ['^(.*,){20}x$', repeated(',')],
  ['(.*)(.*)(.*)(.*)(.*)[^a]$', repeated('a')],
  ['(?:a|b)*a(?:a|b){20}c', mixed()],
  ['(a|b)*a(a|b){200}$', `${mixed()}!`],
  ['x{0,900}y?z', repeated('x')],
  ['^([a-zA-Z0-9]{1,64}\\.?){1,8}$', `${repeated('a')}!`],
  ['((a{0,9}){0,9}){0,9}b$', repeated('a')],
  ['(a?){1000}a{1000}$', `${repeated('a')}!`],
  ['(?=.*a.*a)(?!.*c)(?<=a.*)b+$', `${mixed()}!`],
  ['(?<=a{0,500})(?=b{0,500}c)z', mixed()],
  ['(\\w+\\s?)*\\W$', repeated('word ')],
  ['^(?:[\\p{L}\\s]+\\p{Lu}?)*$', `${foreign()}!`],
  ['^\\s+|\\s+$', `${repeated(' ')}x${repeated(' ')}x`],
  ['(?:\\d+\\.?\\d*)+e', repeated('1')],
  ['^(([^"\\\\]|\\\\.)*|"+)*$', `${repeated('\\"')}"\n"\\`],
];

const textSchema = (pattern: string): Readonly<Record<string, unknown>> => ({
  type: 'object',
  properties: { text: { type: 'string', pattern } },
});

describe('R-15.1 a pattern of a foreign schema', () => {
  it.each(HOSTILE)('R-15.1 %s takes 100 KB in under 50 ms, or twice that beside others', async (pattern, text) => {
    const check = compileJsonSchema({ ...textSchema(pattern), patternProperties: { [pattern]: { type: 'string' } } });
    const limit = (loadavg()[0] ?? 0) > availableParallelism() ? 100 : 50;
    await expect.poll(() => cpuMs(() => check({ text })), { timeout: 4_000 }).toBeLessThan(limit);
  });

  it.each(['^(a+)+$', '(?:a|b)*a(?:a|b){7}c', '[a-z]+@', '^(?:a?a?)*b', '(?=.*c)(?<!b)a*d'])(
    'R-15.1 %s: eight times the text is not much more than eight times the work',
    (pattern) => {
      const linear = linearPattern(pattern);
      const [some, more] = [mixed(50_000), mixed(400_000)];
      linear.test(some);
      // Quadratic work would be 64 times as much.
      expect(cpuMs(() => linear.test(more))).toBeLessThan(
        24 *
          Math.max(
            2,
            cpuMs(() => linear.test(some)),
          ),
      );
    },
  );

  it('R-15.1 what would cost more than its share is a misfit, not a guess', () => {
    const check = compileJsonSchema(textSchema('(a|b)*a(a|b){200}$'));
    expect(check({ text: `${mixed()}!` })).toBe(
      'the value: is too costly to check against the pattern "(a|b)*a(a|b){200}$"; send a shorter text',
    );
    expect(check({ text: `a${mixed(200)}` })).toBeUndefined();
  });

  it('R-15.1 formats that are patterns run in linear time too', () => {
    const check = compileJsonSchema({
      type: 'object',
      properties: { url: { type: 'string', format: 'url' }, mail: { type: 'string', format: 'email' } },
    });
    expect(check({ url: 'https://ann@db.example:8080/x', mail: 'a.b@c.example' })).toBeUndefined();
    expect(check({ url: 'ftp:/x' })).toBe('url: must match format "url"');
    const hostile = `http://a${repeated(':a')} `;
    // By backtracking 6 s.
    expect(cpuMs(() => check({ url: hostile }))).toBeLessThan(500);
    expect(check({ url: hostile })).toBe('url: must match format "url"');
  });

  it.each<[string, string]>([
    ['^(a+)\\1$', 'it refers back to what a group matched; write out what may stand there'],
    ['^(?<x>a+)\\k<x>$', 'it refers back to what a group matched'],
    ['a{1000000}', 'its repeats make it larger than 20000 steps; limit the length with maxLength instead'],
    ['((((a{100}){100}){100}){100}){100}', 'its repeats make it larger'],
    ['(?:){4000000000}', 'its repeats make it larger'],
    [`${'('.repeat(100)}a${')'.repeat(100)}`, 'it nests groups more than 64 deep'],
    ['(?=a)'.repeat(9), 'it looks ahead or behind in more than 8 places'],
    ['(?i:a)', 'it changes its flags inside'],
    [`[${'ab'.repeat(10_000)}]`, 'it is longer than 16384 characters'],
    ['(', 'Invalid regular expression'],
  ])('R-15.1 %.30s is refused by name, with the remedy', (pattern, why) => {
    const started = cpuMs(() => {
      expect(() => compileJsonSchema(textSchema(pattern))).toThrow(RangeError);
    });
    expect(started).toBeLessThan(200);
    expect(() => compileJsonSchema(textSchema(pattern))).toThrow(
      `the pattern ${JSON.stringify(pattern).slice(0, 40).replace(/"$/, '')}`,
    );
    for (const schema of [
      textSchema(pattern),
      { type: 'object', patternProperties: { [pattern]: {} } },
      { $defs: { it: { type: 'string', pattern } }, type: 'object', properties: { text: { $ref: '#/$defs/it' } } },
    ]) {
      expect(() => compileJsonSchema(schema, { from: 'author' })).toThrow(why);
      expect(mcpInput({ name: 'x', inputSchema: schema }, () => undefined).refused).toContain(why);
    }
  });

  it('R-15.1 data that looks like a pattern is none', () => {
    const inputSchema = {
      properties: { pattern: { type: 'string', default: { pattern: '(' }, enum: [{ pattern: '(' }] } },
      examples: [{ pattern: '(' }],
    };
    expect(mcpInput({ name: 'x', inputSchema }, () => undefined).refused).toBeUndefined();
  });

  it.each<[string, string, string]>([
    ['^(a+)+$', 'aaa', 'aab'],
    ['^((ab)*c?)*$', 'ababc', 'abd'],
    ['^\\(?(?:\\d{3})\\)?[- ]?\\d{4}$', '(555) 1234', '55-1234'],
    ['^(?=.*[A-Z])(?=.*\\d)(?!.*\\s).{8,}$', 'Passw0rdly', 'password1'],
    [
      '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$',
      '1.2.3-rc.1',
      '1.02.3',
    ],
    ['^[\\w.+-]+@[\\w-]+\\.[a-z]+$', 'a@b.co', 'a@b'],
    ['^[(+|)*]+$', '(+)', 'a'],
    ['^.{1,5000}$', '😀', ''],
    ['\\bcat\\b', 'a cat sat', 'concat'],
    ['^[\\p{Lu}-]{2}$', 'ÄÖ', 'äö'],
  ])('R-15.1 %s is checked here', (pattern, fits, doesNot) => {
    const check = compileJsonSchema(textSchema(pattern));
    expect(check({ text: fits })).toBeUndefined();
    expect(check({ text: doesNot })).toContain('must match pattern');
  });

  it('R-15.1 means what the platform means by it', () => {
    const atoms = [
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\w',
      '\\d',
      '\\s',
      '\\W',
      '[^]',
      '[]',
      '\\u{1F600}',
      'é',
      '\\p{L}',
      '😀',
      '\\n',
      '[a-c\\-]',
      '\\x61',
      '\\uD83D\\uDE00',
      '\\ud83d',
      'K',
      '^',
      '$',
      '\\b',
      '\\B',
    ];
    const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
      pattern: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(...atoms),
        fc.tuple(tie('pattern'), tie('pattern')).map((parts) => parts.join('')),
        fc.tuple(tie('pattern'), tie('pattern')).map((parts) => `(${parts.join('|')})`),
        fc
          .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '*?', '{2}', '{0,2}', '{2,}', '{0}'))
          .map(([body, times]) => `(?:${body})${times}`),
        fc
          .tuple(fc.constantFrom('(?=', '(?!', '(?<=', '(?<!'), tie('pattern'))
          .map(([look, body]) => `${look}${body})`),
      ),
    }));
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', 'é', '😀', '\ud83d', '\ude00', 'K', '\u212a', '_', '-'),
      maxLength: 8,
    });
    fc.assert(
      fc.property(
        pattern,
        fc.constantFrom('u', 'iu', 'su'),
        fc.array(text, { minLength: 5, maxLength: 5 }),
        (pattern, flags, texts) => {
          // From the start: V8 alone would also begin between the halves of a surrogate pair, where the language has no
          // place.
          const platform = new RegExp(`^[^]*?(?:${pattern})`, flags);
          fc.pre((pattern.match(/\(\?<?[=!]/g) ?? []).length <= 8);
          const linear = linearPattern(pattern, flags);
          for (const each of texts)
            expect(linear.test(each), `${String(platform)} on ${JSON.stringify(each)}`).toBe(platform.test(each));
        },
      ),
      { numRuns: 3_000 },
    );
  });
});

describe('R-15.1 whoever lists the schema', () => {
  it('R-15.1 an MCP server: what it lists and what it answers stops nothing, and a pattern that is refused is told at once', async () => {
    const provider = await mcpStdioProvider({
      name: 'm',
      command: process.execPath,
      args: [join(import.meta.dirname, 'hostile-mcp-server.ts')],
    });
    const spillway = createSpillway({ providers: [provider] });
    expect(provider.unchecked).toEqual([
      {
        toolName: 'm.twice',
        reason: expect.stringContaining(String.raw`the pattern "^(a+)\\1$" cannot be used: it refers back`) as unknown,
      },
    ]);
    const input = { text: `${'a'.repeat(31)}!` };
    // By backtracking 54 s each.
    const started = process.cpuUsage();
    expect(await spillway.execute({ toolName: 'm.search', input })).toMatchObject({
      attempts: 0,
      error: { code: 'invalid_parameters' },
    });
    expect(await spillway.execute({ toolName: 'm.search', input: { text: 'aaa' } })).toMatchObject({
      attempts: 1,
      error: { code: 'execution_error', retriable: false },
    });
    expect(await spillway.execute({ toolName: 'm.twice', input: { text: 'aab' } })).toMatchObject({
      status: 'success',
      output: { content: { text: 'ok' } },
    });
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(5_000);
    await spillway.close();
  });

  it('R-15.1 a REST manifest', () => {
    const manifest = (pattern: string): string =>
      JSON.stringify({
        name: 'api',
        base_url: 'https://api.example.com',
        tools: [
          { id: 'find', url: '/find{?q}', input: { type: 'object', properties: { q: { type: 'string', pattern } } } },
        ],
      });
    const { tools } = restProvider(readRestManifest(manifest('^(a+)+$')));
    // By backtracking 12 s.
    expect(cpuMs(() => tools[0]?.input?.safeParse({ q: `${'a'.repeat(29)}!` }))).toBeLessThan(500);
    expect(tools[0]?.input?.safeParse({ q: `${'a'.repeat(29)}!` }).success).toBe(false);
    expect(() => restProvider(readRestManifest(manifest('(a)\\1')))).toThrow(
      /the pattern "\(a\)\\\\1" cannot be used: it refers back/,
    );
  });

  it('R-15.1 a router', () => {
    const agent = (pattern: string): Parameters<typeof routerProvider>[0] => ({
      agents: [{ name: 'billing', description: 'Bills.', parameters: textSchema(pattern), run: () => 'done' }],
    });
    const [handoff] = routerProvider(agent('^(a+)+$')).tools;
    expect(
      cpuMs(() => handoff?.input?.safeParse({ agent: 'billing', parameters: { text: `${'a'.repeat(29)}!` } })),
    ).toBeLessThan(500);
    expect(() => routerProvider(agent('(a)\\1'))).toThrow('it refers back');
  });
});
