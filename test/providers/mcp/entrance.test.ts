import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import { mcpAborted, mcpErrorResult, mcpNotConnected, mcpThrown } from '../../../src/errors/mcp.ts';
import { classify } from '../../../src/policy/recovery/classify.ts';

const coded = (code: number | string, message: string, data?: unknown): Error =>
  Object.assign(new Error(message), { code, data });
const result = (...texts: string[]): unknown => ({
  isError: true,
  content: texts.map((text) => ({ type: 'text', text })),
});

/** kind, executed, uncertain, class: what matters of an error to those who decide. */
const told = (error: ToolExecutionError): unknown[] => [
  error.kind,
  error.executed,
  error.uncertain,
  classify(error).classification,
];

describe('what a client throws', () => {
  it.each<[string, unknown, unknown[]]>([
    ['SDK 1, timeout', coded(-32001, 'MCP error -32001: Request timed out'), ['timeout', true, true, 'transient']],
    ['SDK 2, timeout', coded('REQUEST_TIMEOUT', 'Request timed out'), ['timeout', true, true, 'transient']],
    [
      'SDK 1, connection closed',
      coded(-32000, 'MCP error -32000: Connection closed'),
      ['transport_error', true, true, 'transient'],
    ],
    [
      'SDK 2, connection closed',
      coded('CONNECTION_CLOSED', 'Connection closed'),
      ['transport_error', true, true, 'transient'],
    ],
    ['SDK 2, send failed', coded('SEND_FAILED', 'write'), ['transport_error', true, true, 'transient']],
    ['SDK 1, not connected', new Error('Not connected'), ['transport_error', false, false, 'transient']],
    ['SDK 2, not connected', coded('NOT_CONNECTED', 'Not connected'), ['transport_error', false, false, 'transient']],
    [
      'a server’s own -32000',
      coded(-32000, 'MCP error -32000: Rate limit exceeded'),
      ['execution_error', true, false, 'transient'],
    ],
    [
      'invalid params',
      coded(-32602, 'MCP error -32602: limit must be positive'),
      ['invalid_parameters', false, false, 'permanent'],
    ],
    [
      'unknown tool as a protocol error',
      coded(-32602, 'MCP error -32602: Unknown tool: nope'),
      ['unknown_tool', false, false, 'permanent'],
    ],
    ['unknown tool, SDK 2', coded(-32602, 'Tool nope not found'), ['unknown_tool', false, false, 'permanent']],
    [
      'no such method',
      coded(-32601, 'MCP error -32601: Method not found'),
      ['unknown_tool', false, false, 'permanent'],
    ],
    [
      'task required, by the client',
      coded(-32600, 'MCP error -32600: Tool "nope" requires task-based execution. Use ...'),
      ['not_permitted', false, false, 'permanent'],
    ],
    [
      'no structured content',
      coded(-32600, 'MCP error -32600: Tool nope has an output schema but did not return structured content'),
      ['execution_error', true, true, 'permanent'],
    ],
    [
      'structured content that does not fit',
      coded(
        -32602,
        "MCP error -32602: Structured content does not match the tool's output schema: data/a must be number",
      ),
      ['execution_error', true, true, 'permanent'],
    ],
    [
      'a result that the server finds invalid',
      coded(-32602, 'MCP error -32602: MCP error -32602: Invalid tools/call result: []'),
      ['execution_error', true, true, 'permanent'],
    ],
    [
      'structured content that could not be checked',
      coded(-32602, 'Failed to validate structured content: x'),
      ['execution_error', true, true, 'permanent'],
    ],
    [
      'an output schema that is none',
      coded(-32602, "Tool 'nope' has an invalid outputSchema: x"),
      ['execution_error', false, false, 'permanent'],
    ],
    [
      'an answer that is no result, SDK 1',
      Object.assign(new Error('[]'), { name: 'ZodError', issues: [] }),
      ['execution_error', true, true, 'permanent'],
    ],
    ['an answer that is no result, SDK 2', coded('INVALID_RESULT', 'x'), ['execution_error', true, true, 'permanent']],
    [
      'internal error',
      coded(-32603, 'MCP error -32603: Internal error'),
      ['execution_error', true, false, 'transient'],
    ],
    ['pipe broken', coded('EPIPE', 'write EPIPE'), ['transport_error', true, true, 'transient']],
    ['text: timeout', new Error('Timeout reached'), ['timeout', true, true, 'transient']],
    ['text: timed out', new Error('it timed out'), ['timeout', true, true, 'transient']],
    ['text: deadline', new Error('rpc: Deadline Exceeded'), ['timeout', true, true, 'transient']],
    ['text: context deadline', new Error('context deadline exceeded'), ['timeout', true, true, 'transient']],
    ['text: etimedout', new Error('connect ETIMEDOUT'), ['timeout', true, true, 'transient']],
    [
      'HTTP status',
      Object.assign(new Error('x'), { code: 'CLIENT_HTTP_AUTHENTICATION', status: 401 }),
      ['execution_error', true, false, 'permanent'],
    ],
    ['a string', 'boom', ['execution_error', true, false, 'transient']],
    ['null', null, ['execution_error', true, false, 'transient']],
  ])('%s', (_name, thrown, expected) => {
    expect(told(mcpThrown(thrown, 'nope'))).toEqual(expected);
  });

  it('an error of ours passes unchanged', () => {
    const ours = new ToolExecutionError('blocked', 'no');
    expect(mcpThrown(ours, 'x')).toBe(ours);
  });

  it('getters that throw: an error all the same', () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('trap');
        },
      },
    );
    expect(mcpThrown(hostile, 'x').kind).toBe('execution_error');
    expect(mcpErrorResult(hostile, 'x').kind).toBe('execution_error');
  });
});

describe('a result with isError', () => {
  it.each<[string, unknown, unknown[]]>([
    [
      'bad input',
      result('MCP error -32602: Input validation error: Invalid arguments for tool nope: x'),
      ['invalid_parameters', false, false, 'permanent'],
    ],
    [
      'bad input, Python SDK',
      result("Input validation error: 'x' is a required property"),
      ['invalid_parameters', false, false, 'permanent'],
    ],
    ['unknown tool', result('MCP error -32602: Tool nope not found'), ['unknown_tool', false, false, 'permanent']],
    ['unknown tool, Python SDK', result('Unknown tool: nope'), ['unknown_tool', false, false, 'permanent']],
    ['disabled tool', result('MCP error -32602: Tool nope disabled'), ['not_permitted', false, false, 'permanent']],
    [
      'task required',
      result("MCP error -32601: Tool nope requires task augmentation (taskSupport: 'required')"),
      ['not_permitted', false, false, 'permanent'],
    ],
    [
      'bad output',
      result(
        'MCP error -32602: Output validation error: Tool nope has an output schema but no structured content was provided',
      ),
      ['execution_error', true, true, 'permanent'],
    ],
    [
      'the tool’s own -32602',
      result('MCP error -32602: amount too high'),
      ['execution_error', true, false, 'permanent'],
    ],
    [
      'the tool’s own words about another tool',
      result('Tool hammer not found'),
      ['execution_error', true, false, 'permanent'],
    ],
    [
      'missing file',
      result('ENOENT: no such file or directory, open /x'),
      ['execution_error', true, false, 'permanent'],
    ],
    ['rate limit', result('Rate limit exceeded (429)'), ['execution_error', true, false, 'transient']],
    [
      'its own connection lost: what it did there is not known',
      result('read ECONNRESET'),
      ['execution_error', true, true, 'transient'],
    ],
    [
      'its own connection refused',
      result('connect ECONNREFUSED 10.0.0.5:443'),
      ['execution_error', true, false, 'transient'],
    ],
    ['its own timeout', result('Request to bank timed out'), ['timeout', true, true, 'transient']],
    ['nothing in particular', result('boom'), ['execution_error', true, false, 'transient']],
    ['no content', { isError: true, content: [] }, ['execution_error', true, false, 'transient']],
    ['no list', { isError: true, content: 7 }, ['execution_error', true, false, 'transient']],
  ])('%s', (_name, given, expected) => {
    expect(told(mcpErrorResult(given, 'nope'))).toEqual(expected);
  });

  it('without a text: the message is not empty', () => {
    expect(mcpErrorResult({ isError: true, content: [{ type: 'text', text: ' ' }] }, 'x').message).toBe(
      'The tool failed without saying why',
    );
  });

  it('only what speaks of the model’s own input is safe to show', () => {
    expect(mcpErrorResult(result('MCP error -32602: Input validation error: x'), 'x').safeMessage).toBe(
      'MCP error -32602: Input validation error: x',
    );
    expect(mcpErrorResult(result('secret host 10.0.0.5'), 'x').safeMessage).toBeUndefined();
  });

  it('megabytes of text: 8 KB are read, twice what is shown, in no time', () => {
    const long = result('a'.repeat(20_000_000), 'timed out');
    const error = mcpErrorResult(long, 'x');
    // The least of a few: the machine may be busy with something else.
    const tookMs = Array.from({ length: 5 }, () => {
      const startMs = performance.now();
      mcpErrorResult(long, 'x');
      return performance.now() - startMs;
    });
    expect(Math.min(...tookMs)).toBeLessThan(200);
    expect(error.message).toHaveLength(8192);
    expect(error.kind).toBe('execution_error');
  });
});

describe('an aborted signal', () => {
  it('by the caller: canceled; by a timeout: timeout; with an error of ours: that one', () => {
    const ours = new ToolExecutionError('deadline_exceeded', 'late');
    expect(told(mcpAborted(AbortSignal.abort(), true))).toEqual(['canceled', true, true, 'permanent']);
    expect(told(mcpAborted(AbortSignal.abort(), false))).toEqual(['canceled', false, false, 'permanent']);
    expect(told(mcpAborted(AbortSignal.abort(new DOMException('x', 'TimeoutError')), true))).toEqual([
      'timeout',
      true,
      true,
      'transient',
    ]);
    expect(mcpAborted(AbortSignal.abort(ours), true)).toBe(ours);
  });
});

describe('a server that cannot be connected', () => {
  it('is not executed, and permanent only where structure says so', () => {
    expect(told(mcpNotConnected(coded('ENOENT', 'spawn x ENOENT'), 'x'))).toEqual([
      'transport_error',
      false,
      false,
      'permanent',
    ]);
    expect(told(mcpNotConnected(coded('ECONNREFUSED', 'x'), 'x'))).toEqual([
      'transport_error',
      false,
      false,
      'transient',
    ]);
    expect(told(mcpNotConnected(new Error('invalid API key'), 'x'))).toEqual([
      'transport_error',
      false,
      false,
      'transient',
    ]);
  });
});
