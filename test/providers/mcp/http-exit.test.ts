import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { httpServer } from './http-server.ts';

const PROVIDER = new URL('../../../src/providers/mcp-http.ts', import.meta.url).href;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A program that makes a call, aborts another, and says when it closed its provider. */
const program = (url: string): string => `
import { mcpHttpProvider } from ${JSON.stringify(PROVIDER)};
const provider = await mcpHttpProvider({ name: 'box', url: ${JSON.stringify(url)} });
const tool = (name) => provider.tools.find((tool) => tool.name === name);
const controller = new AbortController();
const context = { signal: controller.signal, attempt: 1, callKey: 'k', progress: () => controller.abort() };
console.log(await tool('box.echo').execute({ text: 'hi' }, context));
await tool('box.steps').execute({ count: 50, everyMs: 200 }, context).catch(({ kind }) => console.log(kind));
await provider.close();
const closedAtMs = performance.now();
process.on('exit', () => console.log(performance.now() - closedAtMs < 3_000 ? 'in time' : 'late'));
`;

describe('a process that closed its provider', () => {
  it.each([false, true])(
    'exits by itself: no socket and no timer holds it (streams that can be taken up again: %s)',
    async (resumable) => {
      await using server = await httpServer({ resumable });
      const { stdout, stderr } = await promisify(execFile)(
        process.execPath,
        ['--input-type=module', '-e', program(server.url)],
        { cwd: ROOT, timeout: 60_000 },
      );
      expect(stderr).toBe('');
      expect(stdout.split('\n')).toEqual(['hi', 'canceled', 'in time', '']);
    },
  );
});
