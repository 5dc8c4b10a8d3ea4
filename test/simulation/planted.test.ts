import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { BatchReport } from './batch.ts';
import { PLANTS } from './plant.ts';

// A harness that finds nothing proves nothing: each bug is planted in the real layer, in a process of its own, and must be found.
const run = promisify(execFile);
const script = `${import.meta.dirname}/run.ts`;

describe.concurrent('planted bugs', () => {
  it.each(Object.entries(PLANTS))('%s is found', async (name, { seeds, by }) => {
    const { stdout } = await run(process.execPath, [script, '--json', '--threads', '1', '--seeds', String(seeds), '--plant', name]);
    const { failed } = JSON.parse(stdout) as BatchReport;
    const broken = failed.flatMap(({ violations }) => violations.map(({ invariant }) => invariant));
    expect(broken.some((invariant) => by.includes(invariant)), `${name} broke ${broken.join(', ') || 'nothing'} in ${seeds} seeds, and not ${by.join(' or ')}`).toBe(true);
  }, 240_000);
});
