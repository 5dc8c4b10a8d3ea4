import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PlanFileError, loadPlan } from '../../src/cli/plan/file.ts';
import { STACK_TRACE, folder, spillway } from './support.ts';

const files = folder();

/** A server that leaves a trace when it is started, which none of these plans may do. */
const STARTED = join(files.path, 'started');
const servers = `servers:\n  s: { command: ${JSON.stringify(process.execPath)}, args: [-e, 'require("node:fs").writeFileSync(${JSON.stringify(STARTED)}, "")'] }\n`;
const nodes = (...lines: string[]): string =>
  `${servers}turn:\n  nodes:\n${lines.map((line) => `    - ${line}\n`).join('')}`;
const tool = (line: string): string =>
  `${servers}tools:\n  - { id: t, server: s, tool: x, ${line} }\nturn: { nodes: [{ id: a, tool: t }] }\n`;
const bomb = [
  'a: &a [x, x, x, x, x, x, x, x, x]',
  ...'bcdefghij'
    .split('')
    .map(
      (name, index) =>
        `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefghij'[index] ?? ''}`).join(', ')}]`,
    ),
].join('\n');

interface WrongPlan {
  readonly what: string;
  readonly plan: string | Uint8Array;
  /** The place and the rule. */
  readonly says: RegExp;
}

const WRONG: readonly WrongPlan[] = [
  {
    what: 'a cycle',
    plan: nodes('{ id: a, tool: s.x, needs: [b] }', '{ id: b, tool: s.x, needs: [a] }'),
    says: /:5:\d+: turn\.nodes\[0\]\.needs\[0\]: .*circle: a, b, a/,
  },
  {
    what: 'a node that needs itself',
    plan: nodes('{ id: a, tool: s.x, needs: [a] }'),
    says: /turn\.nodes\[0\]\.needs\[0\]: .*circle: a, a/,
  },
  {
    what: 'an unknown need',
    plan: nodes('{ id: a, tool: s.x, needs: [ghost] }'),
    says: /:5:\d+: turn\.nodes\[0\]\.needs\[0\]: Node a needs ghost/,
  },
  {
    what: 'a duplicate node id',
    plan: nodes('{ id: a, tool: s.x }', '{ id: a, tool: s.x }'),
    says: /:6:13: turn\.nodes\[1\]\.id: Two nodes have the id a/,
  },
  {
    what: 'an unknown tool',
    plan: nodes('{ id: a, tool: flight_serch }'),
    says: /turn\.nodes\[0\]\.tool: there is no tool flight_serch/,
  },
  {
    what: 'a tool of an unknown server',
    plan: nodes('{ id: a, tool: elsewhere.x }'),
    says: /turn\.nodes\[0\]\.tool: there is no tool elsewhere\.x/,
  },
  {
    what: 'an unknown server of a tool',
    plan: `${servers}tools: [{ id: t, server: z, tool: x }]\nturn: { nodes: [{ id: a, tool: t }] }`,
    says: /:3:\d+: tools\[0\]\.server: there is no server z; there is s/,
  },
  {
    what: 'a duplicate tool id',
    plan: `${servers}tools:\n  - { id: t, server: s, tool: x }\n  - { id: t, server: s, tool: y }\nturn: { nodes: [{ id: a, tool: t }] }`,
    says: /:5:11: tools\[1\]\.id: tools\[0\] has the id t already/,
  },
  {
    what: 'an alternative that does not exist',
    plan: tool('alternatives: [backup]'),
    says: /tools\[0\]\.alternatives\[0\]: there is no tool backup/,
  },
  {
    what: 'a tool that is its own alternative',
    plan: tool('alternatives: [t]'),
    says: /tools\[0\]\.alternatives\[0\]: t cannot be its own alternative/,
  },
  {
    what: 'a negative timeout',
    plan: tool('timeout_ms: -1'),
    says: /:4:\d+: tools\[0\]\.timeout_ms: must be above 0, not -1/,
  },
  {
    what: 'a timeout of zero',
    plan: `${nodes('{ id: a, tool: s.x }')}  timeout_ms: 0\n`,
    says: /turn\.timeout_ms: must be above 0, not 0/,
  },
  {
    what: 'a duration that is no number',
    plan: tool('timeout_ms: .nan'),
    says: /tools\[0\]\.timeout_ms: must be a number, not NaN/,
  },
  {
    what: 'an endless duration',
    plan: tool('timeout_ms: .inf'),
    says: /tools\[0\]\.timeout_ms: must be a number, not Infinity/,
  },
  {
    what: 'a duration with a unit',
    plan: tool('timeout_ms: 30s'),
    says: /tools\[0\]\.timeout_ms: must be a number, not "30s"/,
  },
  {
    what: 'half an attempt',
    plan: tool('retry_policy: { max_attempts: 1.5 }'),
    says: /retry_policy\.max_attempts: must be an integer, not 1\.5/,
  },
  {
    what: 'an unknown strategy',
    plan: tool('retry_policy: { strategy: fibonacci }'),
    says: /retry_policy\.strategy: must be one of exponential,/,
  },
  { what: 'an unknown key', plan: tool('retries: 3'), says: /:4:\d+: tools\[0\]\.retries: there is no such key here/ },
  {
    what: 'a misspelt key',
    plan: tool('retry_polcy: {}'),
    says: /tools\[0\]\.retry_polcy: .* did you mean retry_policy\?/,
  },
  {
    what: 'a breaker that measures more than its window',
    plan: tool('circuit_breaker: { window_size: 5, minimum_calls: 9 }'),
    says: /tools\[0\]\.circuit_breaker: minimum_calls must be an integer from 1 to window_size/,
  },
  {
    what: 'a class that does not exist',
    plan: tool('classification: { "503": sometimes }'),
    says: /classification\.503: must be one of transient, permanent, not "sometimes"/,
  },
  {
    what: 'a wrong type',
    plan: `${servers}turn: { nodes: all }`,
    says: /:3:\d+: turn\.nodes: must be a list, not "all"/,
  },
  { what: 'no nodes', plan: `${servers}turn: { nodes: [] }`, says: /turn\.nodes: must have at least 1 entry, not 0/ },
  { what: 'a node without a tool', plan: nodes('{ id: a }'), says: /:5:\d+: turn\.nodes\[0\]\.tool: is missing/ },
  {
    what: 'an id with a space',
    plan: nodes('{ id: a b, tool: s.x }'),
    says: /turn\.nodes\[0\]\.id: must be made of letters/,
  },
  {
    what: 'a server over another protocol',
    plan: 'servers: { s: { url: "ftp://localhost" } }\nturn: { nodes: [{ id: a, tool: s.x }] }',
    says: /servers\.s\.url: must begin with http: or https:, not ftp:/,
  },
  {
    what: 'an environment variable that is a number',
    plan: 'servers: { s: { command: x, env: { PORT: 80 } } }\nturn: { nodes: [{ id: a, tool: s.x }] }',
    says: /servers\.s\.env\.PORT: must be a text, not 80; put it in quotes/,
  },
  {
    what: 'a reference to a node that is not needed',
    plan: nodes('{ id: a, tool: s.x }', '{ id: b, tool: s.x, input: { m: "${a}" } }'),
    says: /turn\.nodes\[1\]\.input\.m: \$\{a\} .* add a to the needs of b/,
  },
  {
    what: 'a reference that is none',
    plan: nodes('{ id: a, tool: s.x, input: { m: "${a b}" } }'),
    says: /turn\.nodes\[0\]\.input\.m: \$\{a b\} is no reference/,
  },
  {
    what: 'an input that JSON cannot hold',
    plan: nodes('{ id: a, tool: s.x, input: { m: .nan } }'),
    says: /turn\.nodes\[0\]\.input\.m: must be a number that JSON knows/,
  },
  {
    what: 'a number too large to keep',
    plan: nodes('{ id: a, tool: s.x, input: { m: 12345678901234567890 } }'),
    says: /input\.m: 12345678901234567890 is too large to be kept exactly/,
  },
  { what: 'a YAML bomb', plan: `${bomb}\n`, says: /:1:1: the plan: holds more than 200000 values/ },
  {
    what: 'a plan that contains itself',
    plan: 'turn: &turn { nodes: [*turn] }',
    says: /:1:\d+: .*\*turn stands inside what it refers to/,
  },
  { what: 'a very deep nest', plan: `a: ${'['.repeat(5_000)}`, says: /nested too deeply; the limit is 64 levels/ },
  {
    what: 'a key that is there twice',
    plan: `${servers}turn: { nodes: [] }\nturn: { nodes: [] }`,
    says: /:4:1: turn: the key "turn" is there twice/,
  },
  { what: 'a tag', plan: 'turn: !!js/function "x"', says: /:1:\d+: .*tags \(!\.\.\.\) are not understood/ },
  { what: 'broken YAML', plan: 'turn: { nodes: [', says: /:1:\d+: .*is not YAML/ },
  { what: 'two documents', plan: '---\na: 1\n---\nb: 2\n', says: /:3:\d+: .*more than one document/ },
  { what: 'an empty file', plan: '', says: /:1:1: the plan: is empty/ },
  { what: 'a list instead of a mapping', plan: '- a\n- b\n', says: /:1:1: the plan: must be a mapping, not a list/ },
  { what: 'text that is not UTF-8', plan: Uint8Array.of(0x61, 0x3a, 0x20, 0xff, 0x0a), says: /is not UTF-8 text/ },
  {
    what: 'a binary file',
    plan: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0x00, 0x01),
    says: /:1:5: holds the control character/,
  },
  { what: 'a file that is too large', plan: `# ${'x'.repeat(1_048_576)}\n`, says: /is larger than 1048576 bytes/ },
];

const fileName = (what: string): string => `${what.replaceAll(' ', '-')}.yaml`;
const file = (what: string, plan: string | Uint8Array): string => files.write(fileName(what), plan);

afterAll(() => files[Symbol.dispose]());

describe('CLI refuses, naming place and rule,', () => {
  it.each(WRONG)('$what', async ({ what, plan, says }) => {
    const refused = loadPlan(file(what, plan));
    await expect(refused).rejects.toThrow(PlanFileError);
    await expect(refused).rejects.toThrow(says);
    await expect(refused).rejects.toThrow(fileName(what));
  });

  it('a folder', async () => {
    await expect(loadPlan(files.path)).rejects.toThrow(/is a folder; name the plan file in it/);
  });

  it('a file that is not there', async () => {
    await expect(loadPlan(join(files.path, 'none.yaml'))).rejects.toThrow(/none\.yaml: there is no such file/);
  });

  it('20,000 keys without taking quadratic time', async () => {
    const before = process.cpuUsage();
    await expect(
      loadPlan(files.write('keys.yaml', Array.from({ length: 20_000 }, (_, index) => `k${index}: v\n`).join(''))),
    ).rejects.toThrow(/there is no such key here/);
    // yaml's own check of unique keys takes 12 s for them, and a schema made for each of them a minute; without these,
    // half a second. Of the processor, which others use beside it.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(6_000);
  });

  it('no more than ten problems at a time, and says how many more there are', async () => {
    const refused = loadPlan(
      files.write('many.yaml', nodes(...Array.from({ length: 30 }, (_, index) => `{ id: n${index}, tool: ghost }`))),
    );
    await expect(refused).rejects.toThrow(/\.\.\. and 20 more$/);
  });
});

describe('CLI exits 2 as a process, and starts nothing, on', () => {
  // A process takes most of a second: one of each way to be refused. The table above is the rest.
  const sample = ['a cycle', 'an unknown tool', 'a negative timeout', 'an unknown key', 'a YAML bomb', 'a binary file'];
  it.concurrent.each(WRONG.filter(({ what }) => sample.includes(what)))('$what', async ({ what, plan, says }) => {
    const { code, stdout, stderr } = await spillway('run', file(what, plan));
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(STACK_TRACE);
    expect({ code, stdout, started: existsSync(STARTED) }).toEqual({ code: 2, stdout: '', started: false });
  });
});
