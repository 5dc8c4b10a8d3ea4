// Was: on Node 20, which `npx` finds on many machines, the command ended with a TypeError and a stack. Now: it says
// which Node it needs.
import { describe, expect, it } from 'vitest';
import { STACK_TRACE, start } from '../cli/support.ts';

describe('R-2.9 a Node without what the command needs', () => {
  it('R-2.9 is told so, before anything is read', async () => {
    const old = ['--import', 'data:text/javascript,delete%20Map.groupBy'];
    const { code, stdout, stderr } = await start(['show', 'no-such-file'], {}, undefined, old).ended;
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `spillway: it needs Node 22 or later, and this is ${process.version}\n`,
    });
    expect(stderr).not.toMatch(STACK_TRACE);
  });
});
