import { appendFileSync } from 'node:fs';

/** Adds calls to a trace file, five events each; every tenth is retried. */
export function manyCalls(file: string, count: number, from = 0): void {
  const lines: string[] = [];
  const flush = (): void => {
    appendFileSync(file, lines.join(''));
    lines.length = 0;
  };
  for (let index = from; index < from + count; index++) {
    const atMs = index * 2;
    const call = { source: 'call', callId: `c${index}`, toolName: `tool_${index % 50}` };
    const result = {
      requestId: call.callId,
      status: 'success',
      fromCache: false,
      toolName: call.toolName,
      durationMs: 9,
      attempts: 1,
    };
    const events = [
      { type: 'call_started', breaker: { key: call.toolName, state: 'closed' } },
      { type: 'attempt_started', attempt: 1, dueAtMs: atMs + 30_000 },
      {
        type: 'progress',
        attempt: 1,
        report: { progress: 1, total: 2, message: 'half of it is done, and the rest will follow' },
      },
      { type: 'attempt_succeeded', attempt: 1, durationMs: 9 },
      { type: 'settled', result },
    ];
    events.forEach((event, step) =>
      lines.push(`${JSON.stringify({ seq: index * 5 + step, atMs: atMs + step, ...call, ...event })}\n`),
    );
    if (lines.length > 20_000) flush();
  }
  flush();
}
