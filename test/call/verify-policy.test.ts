import { createSpillway, type Spillway, type ToolPolicy } from 'spillway';
import { describe, expect, it } from 'vitest';

describe('what a tool says of its verification', () => {
  const made = (policy: ToolPolicy, verify: unknown = () => 'unknown'): Spillway =>
    createSpillway({
      tools: [{ name: 'pay', policy: { timeoutMs: 500, ...policy }, execute: () => 1, verify: verify as never }],
    });

  it('R-18.1 a tool with a verify is mutating, and one that says read is refused', () => {
    let told: unknown;
    made({}).trace$.subscribe((event) => (told = event.type === 'layer_started' ? event.tools : told));
    expect(told).toMatchObject([{ name: 'pay', effects: 'mutating' }]);
    expect(() => made({ effects: 'read' })).toThrow(/tool pay: effects is 'read' beside a verify/);
    expect(() => createSpillway({ tools: [], defaults: { verify: { tool: 'x' } } })).toThrow(/verify\.done/);
  });

  it('R-18.2 a warning asks for settleMs unless that, or enforcesKey, is said', () => {
    expect(made({}).warnings.join(' ')).toContain('verify: { settleMs }');
    expect(made({ verify: { settleMs: 0 } }).warnings).toEqual([]);
    expect(made({ enforcesKey: true }).warnings).toEqual([]);
  });

  it.each([
    [{ timeoutMs: 0 }, /verify\.timeoutMs/],
    [{ maxAttempts: 0 }, /verify\.maxAttempts/],
    [{ delayMs: -1 }, /verify\.delayMs/],
    [{ settleMs: Infinity }, /verify\.settleMs/],
    [{ settle: 1 }, /no option "settle"/],
    [{ done: { path: 'a' } }, /verify\.tool/],
    [{ tool: 'list', done: { path: '..' } }, /verify has|a path such as|leave one of them out/],
  ])('R-2.9 %j is refused', (verify, message) => {
    expect(() => made({ verify: verify as never })).toThrow(message);
  });

  it('R-2.9 a verify that is no function is refused', () => {
    expect(() => made({}, { tool: 'list' })).toThrow(/verify must be a function/);
  });
});
