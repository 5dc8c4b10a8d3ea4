import type { MutatedFile } from '../mutant.ts';

/** Where errors enter. Written from the source alone, before looking which tests there are. */
export const ERRORS: readonly MutatedFile[] = [
  {
    file: 'errors/class.ts',
    mutants: [
      [
        'R-1.3 an exhausted quota is permanent, also with a 429',
        "if (sense === 'quota_exhausted') return of('permanent', 'code', `${code}`);",
        '',
      ],
    ],
  },
  {
    file: 'errors/status.ts',
    mutants: [
      ['R-1.3 408 is transient', 'new Set([408, 429, 500,', 'new Set([429, 500,'],
      ['R-1.3 504 is a timeout', 'status === 408 || status === 504', 'status === 408'],
      ['R-1.3 409 is permanent', '405, 409, 410', '405, 410'],
    ],
  },
  {
    file: 'errors/text/sense.ts',
    mutants: [
      [
        'R-1.1 a connection refused did not execute',
        "unreachable: { kind: 'transport_error', options: { executed: false } }",
        "unreachable: { kind: 'transport_error', options: {} }",
      ],
      [
        'R-1.2 a connection lost in mid-call is uncertain',
        "lost: { kind: 'transport_error', options: { uncertain: true } }",
        "lost: { kind: 'transport_error', options: {} }",
      ],
      [
        'R-1.2 an abort in mid-call is uncertain',
        "canceled: { kind: 'canceled', options: { executed: true, uncertain: true } }",
        "canceled: { kind: 'canceled', options: { executed: true } }",
      ],
    ],
  },
  {
    file: 'errors/structure.ts',
    mutants: [
      ['R-2.4 retry-after-ms is milliseconds', 'return Number(text) * unitMs;', 'return Number(text) * 1000;'],
      [
        'R-2.4 a date in the past is a wait that is over',
        'Math.max(0, parseHttpDate(text, nowMs) - nowMs)',
        'parseHttpDate(text, nowMs) - nowMs',
      ],
      [
        'R-1.3 the outermost status wins',
        'status = firstOf(link, STATUSES, asStatus);\n      if (status !== undefined) statusDepth = depth;\n      rpc ??= rpcOf(link);\n    }',
        'rpc ??= rpcOf(link);\n    }\n    const inner = firstOf(link, STATUSES, asStatus);\n    if (inner !== undefined) [status, statusDepth] = [inner, depth];',
      ],
      ['R-12.1 causes are followed', 'CAUSE_DEPTH_MAX = 8', 'CAUSE_DEPTH_MAX = 1'],
      [
        'R-2.4 a server that says no is not asked again',
        "header(headers, 'x-should-retry') === 'false' ? -1",
        "header(headers, 'x-should-retry') === 'false' ? 0",
      ],
    ],
  },
  {
    file: 'errors/reading.ts',
    mutants: [
      [
        'R-12.1 an abort behind an error is how a time-out was made',
        "sense === 'canceled' && depth > 0",
        "sense === 'canceled' && depth > 99",
      ],
    ],
  },
  {
    file: 'errors/mcp.ts',
    mutants: [
      ["R-12.1 MCP: -32001 is a client's timeout", "['-32001', timedOut]", "['-32001', lostMidCall]"],
      [
        'R-1.2 MCP: an output that failed its schema is uncertain',
        "options: { classification: 'permanent', uncertain: true } };",
        "options: { classification: 'permanent' } };",
      ],
      [
        'R-1.2 MCP: an abort after the call was sent is uncertain',
        'executed, uncertain: executed, cause: reason',
        'executed, cause: reason',
      ],
    ],
  },
  {
    file: 'errors/llm.ts',
    mutants: [
      [
        "R-12.1 a model's 5xx is the network's",
        "status >= 500) return 'network_error';",
        "status >= 500) return 'model_error';",
      ],
    ],
  },
];
