// Was: a tool listed later that the layer cannot take, or an alternative that was gone, broke the call that met it.
// Now: it is not there, and the failure stays the tool's own.
import { createSpillway, type ToolResultEnvelope } from 'spillway';
import { describe, expect, it } from 'vitest';
import type { ToolProvider } from '../../src/contract/provider.ts';
import type { AnyTool } from '../../src/contract/tool.ts';
import { tool } from '../../src/layer/tool.ts';

const named = (name: string, answer: string, policy: AnyTool['policy'] = {}): AnyTool =>
  tool({ name, policy, execute: () => answer });
const failing = (alternatives: readonly string[]): AnyTool =>
  tool({
    name: 'first',
    policy: { alternatives, retry: { maxAttempts: 1 } },
    execute: () => Promise.reject(Object.assign(new Error('no such row'), { status: 404 })),
  });
const provider = (list: { tools: readonly AnyTool[] }): ToolProvider => ({
  name: 'box',
  get tools() {
    return list.tools;
  },
  close: () => Promise.resolve(),
});
const brief = ({ status, output, error }: ToolResultEnvelope): unknown => output?.content ?? [status, error?.code];

describe('tools that come and go', () => {
  it('R-12.2 a tool that the layer cannot take, listed later, is not there; the call says so, and the layer works on', async () => {
    const list = { tools: [named('box.read', 'read', { effects: 'read' })] };
    const spillway = createSpillway({ providers: [provider(list)], defaults: { dedupe: { scope: 'global' } } });
    list.tools = [...list.tools, named('box.write', 'written', { effects: 'mutating' })];
    expect(brief(await spillway.execute({ toolName: 'box.write' }))).toEqual(['error', 'unknown_tool']);
    expect(brief(await spillway.execute({ toolName: 'box.read' }))).toBe('read');
    await spillway.close();
  });

  it('R-6.2 an alternative that is gone is passed over, and the failure stays the tool’s own', async () => {
    const backup = named('box.backup', 'saved');
    const list: { tools: readonly AnyTool[] } = { tools: [named('box.gone', 'never'), backup] };
    const spillway = createSpillway({ tools: [failing(['box.gone', 'box.backup'])], providers: [provider(list)] });
    list.tools = [backup];
    expect(brief(await spillway.execute({ toolName: 'first' }))).toBe('saved');
    list.tools = [];
    expect(brief(await spillway.execute({ toolName: 'first' }))).toEqual(['error', 'execution_error']);
    list.tools = [backup];
    expect(brief(await spillway.execute({ toolName: 'first' }))).toBe('saved');
    await spillway.close();
  });
});
