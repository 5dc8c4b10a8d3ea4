// Was: a million characters that each begin a terminal's text took 2 s of the process. Now: a beginning ends the text
// before it, as in terminals.
import { describe, expect, it } from 'vitest';
import { visible } from '../../src/policy/redact/invisible.ts';

const BEGINNINGS = ['\u0090', '\u0098', '\u009d', '\u009e', '\u009f', '\u009dx'];

describe('R-11.4 terminal sequences without an end', () => {
  it.each(BEGINNINGS)('R-11.4 cost no more than their length, begun by %j', (begun) => {
    const text = begun.repeat(1_000_000 / begun.length);
    const before = process.cpuUsage();
    expect(visible(text)).toBe(text.replaceAll(/[^x]/g, ''));
    // Processor time, ten times what is needed: what else the machine does is not in it.
    expect(process.cpuUsage(before).user).toBeLessThan(700_000);
  });

  it('R-11.4 leave nothing of a secret that they cut', () => {
    expect(visible('se\u009d0;title\u0007cr\u009d\u009d0;title\u009cet')).toBe('secret');
  });
});
