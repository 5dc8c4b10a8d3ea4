import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { EVERYTHING, FILESYSTEM } from '../providers/support.ts';
import { NODE, ledger } from './kit.ts';
import {
  behind,
  calls,
  conversation,
  opening,
  rawServer,
  type Command,
  type Json,
  type RawOptions,
  type Step,
} from './wire-kit.ts';

const bin = (name: string): string => fileURLToPath(import.meta.resolve(`@modelcontextprotocol/${name}/dist/index.js`));
const folder = mkdtempSync(join(tmpdir(), 'mcp-real-'));
const memory = join(folder, 'memory.jsonl');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  rmSync(memory, { force: true });
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n');
});

const LISTS: readonly Step[] = [['tools/list'], ['ping'], ['no/such-method', { x: 1 }]];
const thought = (n: number): Step =>
  calls('sequentialthinking', { thought: `t${n}`, nextThoughtNeeded: n < 2, thoughtNumber: n, totalThoughts: 2 });
const entity = { name: 'ada', entityType: 'person', observations: ['counts'] };

/** What a server is told when it asks; it does so in the everything server alone. */
const answer = (method: string): Json => {
  if (method === 'roots/list') return { roots: [{ uri: `file://${folder}`, name: 'here' }] };
  if (method === 'elicitation/create') return { action: 'accept', content: { name: 'Ada' } };
  return { model: 'none', role: 'assistant', content: { type: 'text', text: 'sampled' } };
};

interface Case {
  readonly command: Command;
  readonly steps: readonly Step[];
  readonly options?: RawOptions;
  readonly capabilities?: Json;
}

const CASES: Readonly<Record<string, Case>> = {
  everything: {
    command: [NODE, EVERYTHING, 'stdio'],
    capabilities: { sampling: {}, elicitation: {} },
    options: { answer },
    steps: [
      ...LISTS,
      ['resources/list'],
      ['resources/templates/list'],
      ['prompts/list'],
      ['prompts/get', { name: 'simple-prompt' }],
      ['prompts/get', { name: 'args-prompt', arguments: { city: 'Oulu', state: 'FI' } }],
      ['prompts/get', { name: 'nope' }],
      ['resources/read', { uri: 'demo://resource/static/document/architecture.md' }],
      ['resources/read', { uri: 'demo://nope' }],
      ['resources/subscribe', { uri: 'demo://resource/static/document/architecture.md' }],
      [
        'completion/complete',
        { ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' } },
      ],
      ['logging/setLevel', { level: 'debug' }],
      calls('echo', { message: 'hello' }),
      calls('echo', { message: 'hello' }, { 'x/kept': 1 }),
      calls('get-sum', { a: 1, b: 2 }),
      calls('get-tiny-image', {}),
      calls('get-annotated-message', { messageType: 'error', includeImage: true }),
      calls('get-resource-links', { count: 3 }),
      calls('get-structured-content', { location: 'Chicago' }),
      calls('trigger-long-running-operation', { duration: 0.2, steps: 2 }, { progressToken: 'mine' }),
      calls('trigger-elicitation-request', {}),
      calls('trigger-sampling-request', { prompt: 'x', maxTokens: 10 }),
      calls('no-such-tool', {}),
    ],
  },
  filesystem: {
    command: [NODE, FILESYSTEM, folder],
    steps: [
      ...LISTS,
      calls('read_text_file', { path: join(folder, 'a.txt') }),
      calls('read_text_file', { path: join(folder, 'nope.txt') }),
      calls('read_text_file', { path: '/etc/passwd' }),
      calls('write_file', { path: join(folder, 'b.txt'), content: 'three' }),
      calls('list_directory', { path: folder }),
      calls('edit_file', { path: join(folder, 'b.txt'), edits: [{ oldText: 'three', newText: 'four' }] }),
      calls('search_files', { path: folder, pattern: '*.txt' }),
      calls('read_multiple_files', { paths: [join(folder, 'a.txt'), join(folder, 'nope.txt')] }),
      calls('list_allowed_directories', {}),
      ['resources/list'],
    ],
  },
  memory: {
    command: [NODE, bin('server-memory')],
    options: { env: { MEMORY_FILE_PATH: memory } },
    steps: [
      ...LISTS,
      calls('create_entities', { entities: [entity] }),
      calls('create_entities', { entities: [entity] }),
      calls('create_relations', { relations: [{ from: 'ada', to: 'ada', relationType: 'knows' }] }),
      calls('add_observations', { observations: [{ entityName: 'nobody', contents: ['x'] }] }),
      calls('search_nodes', { query: 'count' }),
      calls('delete_entities', { entityNames: ['ada'] }),
      calls('read_graph', {}),
    ],
  },
  'sequential thinking': {
    command: [NODE, bin('server-sequential-thinking')],
    steps: [...LISTS, thought(1), thought(2)],
  },
};

/** Progress carries the token of whoever asked, which is the same; all else is as it is. */
const talk = async (command: Command, { steps, options, capabilities }: Case): Promise<unknown> =>
  conversation(rawServer(command, options), [...opening(capabilities), ...steps]);

describe('R-16.4 real servers, message by message', () => {
  it.each(Object.entries(CASES))('R-16.4 %s answers through the proxy as it does direct', async (_, given) => {
    const direct = await talk(given.command, given);
    rmSync(memory, { force: true });
    writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n');
    rmSync(join(folder, 'b.txt'), { force: true });
    const proxied = await talk(behind(given.command), given);
    expect(proxied).toEqual(direct);
  });

  it('R-16.4 what no SDK knows passes, too: methods, fields, capabilities, in both directions', async () => {
    using kept = ledger();
    const command: Command = [NODE, join(import.meta.dirname, 'fault-server.ts'), kept.path];
    const given: Case = {
      command,
      capabilities: { elicitation: {}, 'x-unknown': { kept: true } },
      options: { answer: () => ({ action: 'accept', content: { sure: true }, 'x-unknown': 2 }) },
      steps: [
        ['x/echo', { deep: [{ kept: null }], _meta: { 'x/kept': 1 } }],
        ['notifications/x/something', { kept: true }],
        ['tools/list', { 'x-unknown': 1 }],
        calls('ask', {}),
        ['x/none'],
        calls('pay', { amount: 1 }),
      ],
    };
    const direct = await talk(command, given);
    expect(JSON.stringify(direct)).toMatch(/something\/back.*x-unknown/s);
    expect(await talk(behind(command), given)).toEqual(direct);
  });
});
