import { createInterface } from 'node:readline';
import { notesIn, strike } from './fates.ts';

/**
 * A server that does what its caller asks it to suffer: it dies, hangs, floods. Written without an SDK, so that it may
 * also say what no SDK knows. What it did outlives it, in a file.
 */
const [, , ledger = '', startAs = ''] = process.argv;

type Json = Readonly<Record<string, unknown>>;

const write = (message: Json): boolean => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const { note, noted } = notesIn(ledger);

const schema = (properties: Json, required: readonly string[] = []): Json => ({ type: 'object', properties, required });
const how = { type: 'string' };
const TOOLS: readonly Json[] = [
  { name: 'pay', inputSchema: schema({ amount: { type: 'number' }, then: how }, ['amount']) },
  { name: 'look', inputSchema: schema({ first: how, times: { type: 'number' } }), annotations: { readOnlyHint: true } },
  { name: 'ask', inputSchema: schema({}), annotations: { readOnlyHint: true } },
  { name: 'big', inputSchema: schema({ size: { type: 'number' } }), annotations: { readOnlyHint: true } },
  { name: 'flood', inputSchema: schema({ count: { type: 'number' } }), annotations: { readOnlyHint: true } },
  { name: 'pid', inputSchema: schema({}), annotations: { readOnlyHint: true }, 'x-unknown': { kept: true } },
];

const text = (said: string): Json => ({ content: [{ type: 'text', text: said }] });

/** Questions of ours that have not been answered, by the call that they are asked for. */
const asked = new Map<unknown, unknown>();

/** What befalls a call after it did what it does. */
const suffer = (id: unknown, fate: unknown, answer: Json): void => {
  strike(fate);
  if (fate === 'error') write({ id, error: { code: -32_603, message: 'ECONNRESET', data: { kept: true } } });
  else if (fate === 'failed') write({ id, result: { ...text('connect ECONNRESET 10.0.0.1:443'), isError: true } });
  else if (!['kill', 'exit', 'freeze', 'hang'].includes(String(fate))) write({ id, result: answer });
};

const CALLS: Readonly<Record<string, (id: unknown, input: Json) => void>> = {
  pay: (id, { amount, then }) => {
    note(`pay ${String(amount)}`);
    suffer(id, then, text(`paid ${String(amount)}`));
  },
  look: (id, { first, times = 1 }) => {
    const before = noted('look');
    note('look');
    suffer(id, before < Number(times) ? first : 'answer', text(`looked ${before + 1} times`));
  },
  ask: (id) => {
    const question = `question-${String(id)}`;
    asked.set(question, id);
    const params = { message: 'Sure?', requestedSchema: schema({ sure: { type: 'boolean' } }), 'x-unknown': 1 };
    write({ id: question, method: 'elicitation/create', params });
  },
  big: (id, { size }) => void write({ id, result: text('x'.repeat(Number(size))) }),
  flood: (id, { count }) => {
    for (let n = 0; n < Number(count); n++)
      write({ method: 'notifications/message', params: { level: 'info', data: `${n} ${'y'.repeat(1_000)}` } });
    write({ id, result: text('flooded') });
  },
  pid: (id) => void write({ id, result: { ...text(String(process.pid)), 'x-unknown': { kept: true } } }),
};

const ANSWERS: Readonly<Record<string, (params: Json) => Json>> = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: {
      tools: { listChanged: true },
      logging: {},
      resources: { subscribe: true },
      'x-unknown': { kept: 1 },
    },
    serverInfo: { name: 'faults', version: '1' },
  }),
  'tools/list': () => ({ tools: TOOLS, 'x-unknown': 1 }),
  'logging/setLevel': () => ({}),
  'resources/subscribe': () => ({}),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'x'.repeat(12_000_000) }] }),
  'x/echo': (params) => ({ params, 'x-unknown': true }),
};

const request = (id: unknown, method: string, params: Json): void => {
  note(`<- ${method}`);
  if (method === 'tools/call') {
    const call = CALLS[String(params['name'])];
    if (call === undefined)
      write({ id, error: { code: -32_602, message: `Tool ${String(params['name'])} not found` } });
    else call(id, (params['arguments'] ?? {}) as Json);
    return;
  }
  const answer = ANSWERS[method];
  if (answer === undefined) write({ id, error: { code: -32_601, message: 'Method not found' } });
  else write({ id, result: answer(params) });
};

const heard = ({ id, method: said, params = {}, result }: Json): void => {
  const method = typeof said === 'string' ? said : undefined;
  if (method === undefined) {
    const call = asked.get(id);
    asked.delete(id);
    if (call !== undefined) write({ id: call, result: text(JSON.stringify(result)) });
  } else if (id !== undefined) request(id, method, params as Json);
  else {
    note(`<- ${method}`);
    if (method.startsWith('notifications/x/')) write({ method: `${method}/back`, params });
  }
};

note(`pid ${process.pid}`);
note(`started ${startAs}`);
if (startAs === 'broken' && noted('started broken') > 1) strike('exit');
createInterface({ input: process.stdin }).on('line', (line) => heard(JSON.parse(line) as Json));
