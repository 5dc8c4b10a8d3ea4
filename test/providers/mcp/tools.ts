import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

type State = 'running' | 'answered' | 'aborted';

/** One `tools/call` that a server was asked for. */
export interface SeenCall {
  readonly tool: string;
  readonly meta: Readonly<Record<string, unknown>>;
  state: State;
}

/** Told of a call; gives what is told of its end. */
export type Recorder = (tool: string, meta: Readonly<Record<string, unknown>>) => (state: State) => void;

/** The tools of servers in tests: they answer, hang, report and fail, and tell who called them. */
export function registerTools(server: McpServer, record: Recorder): void {
  const seen = (tool: string, meta: unknown, signal: AbortSignal): (() => void) => {
    const end = record(tool, (meta ?? {}) as Record<string, unknown>);
    signal.addEventListener('abort', () => end('aborted'));
    return () => end('answered');
  };
  server.registerTool(
    'echo',
    { inputSchema: { text: z.string(), delayMs: z.number().optional() } },
    async ({ text, delayMs = 0 }, { _meta, signal }) => {
      const answered = seen('echo', _meta, signal);
      if (delayMs > 0) await sleep(delayMs);
      answered();
      return { content: [{ type: 'text', text }] };
    },
  );
  server.registerTool('hang', {}, async ({ _meta, signal }) => {
    seen('hang', _meta, signal);
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
    });
    return { content: [] };
  });
  server.registerTool(
    'steps',
    { inputSchema: { count: z.number(), everyMs: z.number() } },
    async ({ count, everyMs }, { _meta, signal, sendNotification }) => {
      const answered = seen('steps', _meta, signal);
      for (let progress = 1; progress <= count; progress++) {
        if (_meta?.progressToken !== undefined)
          await sendNotification({
            method: 'notifications/progress',
            params: { progressToken: _meta.progressToken, progress, total: count },
          });
        await sleep(everyMs);
      }
      answered();
      return { content: [{ type: 'text', text: 'done' }] };
    },
  );
  server.registerTool('fail', {}, ({ _meta, signal }) => {
    seen('fail', _meta, signal)();
    throw new Error('it broke');
  });
}
