import type { MutatedFile } from '../mutant.ts';

/** The gateway. Written from the source alone, before looking which tests there are. */
export const GATEWAY: readonly MutatedFile[] = [
  {
    file: 'gateway/wire/limits.ts',
    mutants: [
      ['a drain that is over leaves no timer', 'deadline.unsubscribe();', ''],
      ['so many turns at a time and no more', 'this.running < this.#maxTurns', 'this.running <= this.#maxTurns'],
    ],
  },
  {
    file: 'gateway/wire/rate.ts',
    mutants: [
      ['a rate bucket is full at its brim', 'requests : Math.min(requests, bucket.left +', 'requests : (bucket.left +'],
      [
        'a rate bucket is filled once for each moment',
        'this.#buckets.delete(key);\n      this.#buckets.set(key, { left: before - 1, atMs: nowMs });',
        'const atMs = this.#buckets.get(key)?.atMs ?? nowMs;\n      this.#buckets.delete(key);\n      this.#buckets.set(key, { left: before - 1, atMs });',
      ],
    ],
  },
  {
    file: 'gateway/conversation/memory.ts',
    mutants: [
      [
        'R-13.6 a record that has expired is not found',
        'entry !== undefined && entry.expiresAtMs > nowMs',
        'entry !== undefined',
      ],
      ['what was dropped is not counted', 'chars -= stored.get(key)?.chars ?? 0;', ''],
    ],
  },
  {
    file: 'gateway/anthropic/restore.ts',
    mutants: [
      [
        'a request that is sent again over the edge of a window is known',
        'key(window), key(window - 1)]',
        'key(window), key(window)]',
      ],
      ['a record of other calls is not about this message', 'a.length === b.length && a.every(', 'a.every('],
      ['results stand before what else the user says', '[...ordered, ...rest]', '[...rest, ...ordered]'],
    ],
  },
  {
    file: 'gateway/admin/guard.ts',
    mutants: [
      ['a request with a strange Host is refused', '!isOurs(addressed) || !isOurs(host)', '!isOurs(addressed)'],
      [
        'a strange page may not ask',
        'origin !== null && !origins.has(origin) && !isOwnPage(origin, host)',
        "origin === 'null'",
      ],
    ],
  },
  {
    file: 'gateway/wire/headers.ts',
    mutants: [['headers that the connection lists do not go on', 'listed === null ? HOP_BY_HOP', 'true ? HOP_BY_HOP']],
  },
];
