// Was: a call with an `execute`, but without the tool that it stands in for, was accepted. Now: it is refused, the
// refusal names what is missing, and nothing runs.
import { createSpillway, tool } from 'spillway';
import { lastValueFrom } from 'rxjs';
import { expect, it } from 'vitest';

it('R-8.1 an execute without the tool that it stands in for is refused, and nothing runs', async () => {
  let ran = 0;
  const echo = tool({ name: 'echo', execute: () => ran++ });
  const spillway = createSpillway({ tools: [echo] });
  const rule = /execute of a call needs the tool .* give tool, too/;
  await expect(spillway.execute({ toolName: 'echo' }, { execute: () => ran++ })).rejects.toThrow(rule);
  await expect(lastValueFrom(spillway.call({ toolName: 'echo' }, { execute: () => ran++ }))).rejects.toThrow(rule);
  expect(ran).toBe(0);
  await spillway.close();
});
