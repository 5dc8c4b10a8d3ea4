import { spawnSync } from 'node:child_process';

/** Runs Prometheus' own checker; the Debian package `prometheus` has it. */
export function promtool(args: readonly string[], input = ''): { readonly status: number; readonly said: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (error !== undefined) throw new Error('promtool is needed here: apt-get install -y prometheus', { cause: error });
  return { status: status ?? -1, said: `${stdout}${stderr}`.trim() };
}
