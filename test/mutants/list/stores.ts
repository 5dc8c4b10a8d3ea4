import type { MutatedFile } from '../mutant.ts';

/** Where calls are remembered. Written from the source alone, before looking which tests there are. */
export const STORES: readonly MutatedFile[] = [
  {
    file: 'stores/memory/deadlines.ts',
    mutants: [
      [
        "what takes a dropped member's place may rise",
        'if (place > 0 && parent !== undefined && parent.dueMs > last.dueMs) this.#rise(last, place);\n    else this',
        'this',
      ],
      ['the lesser of two children comes up', 'two.dueMs < one.dueMs ? two : one', 'two.dueMs > one.dueMs ? two : one'],
    ],
  },
  {
    file: 'stores/memory/records.ts',
    mutants: [
      [
        'R-10.2 a lease that has passed gives its place in a full store',
        'this.#release(atMs);\n    if (this.#oldest',
        'if (this.#oldest',
      ],
      [
        'R-10.2 the least recently used record goes first',
        'if (entry.running || entry === this.#newest) return;',
        'return;',
      ],
      [
        'R-10.2 a sweep removes what has expired at this very moment',
        'entry.record.expiresAtMs > atMs',
        'entry.record.expiresAtMs >= atMs',
      ],
    ],
  },
  {
    file: 'stores/memory.ts',
    mutants: [
      [
        'R-9.6 fences grow over the end of a process',
        'let version = Math.floor(runtime.wallNow() * VERSIONS_PER_MS);',
        'let version = 0;',
      ],
      [
        'R-9.6 an outcome of another fence is refused',
        'if (entry?.record.version !== of) return undefined;\n      const record',
        'if (entry === undefined) return undefined;\n      const record',
      ],
      ['R-9.6 a delete of another fence is refused', '(of !== undefined && entry.record.version !== of)', 'false'],
      [
        'R-9.6 a lease of another fence is not renewed',
        "entry?.record.version !== of || entry.record.state !== 'inflight'",
        "entry?.record.state !== 'inflight'",
      ],
      [
        'R-9.4 who waits hears of an outcome',
        'records.replace(entry, record, atMs, outcome.pinned);\n      watchers.note(key);',
        'records.replace(entry, record, atMs, outcome.pinned);',
      ],
    ],
  },
  {
    file: 'stores/record-life.ts',
    mutants: [
      [
        'R-9.6 a renewed lease is not taken over',
        'record.version === over && !runs(record, atMs)',
        'record.version === over',
      ],
      [
        'R-9.6 a key is taken over by who saw its last version',
        'record.version === over && !runs(record, atMs)',
        '!runs(record, atMs)',
      ],
      ['R-9.6 a running claim is not forgotten', 'after(atMs, Math.max(ttlMs, leaseMs))', 'after(atMs, ttlMs)'],
      ['R-9.6 nor is one whose lease was renewed', 'Math.max(record.expiresAtMs, lockUntilMs)', 'record.expiresAtMs'],
      [
        'R-10.2 an outcome is kept from when it came',
        'updatedAtMs: atMs, expiresAtMs: after(atMs, ttlMs), ttlMs, request',
        'updatedAtMs: atMs, expiresAtMs: after(createdAtMs, ttlMs), ttlMs, request',
      ],
      ['R-9.6 a lease is over at its end', 'return lockUntilMs > atMs;', 'return lockUntilMs >= atMs;'],
    ],
  },
  {
    file: 'stores/redis/scripts.ts',
    mutants: [
      ['R-9.6 Redis: a valid lease is not taken over', ' or (inflight and record.lock > now)', ''],
      [
        'R-9.6 Redis: a lease of another fence is not renewed',
        "or record.state ~= 'inflight' or record.version ~= ARGV[1] then return 0 end",
        "or record.state ~= 'inflight' then return 0 end",
      ],
      ['R-9.6 Redis: an outcome of another fence is refused', 'if record.version ~= ARGV[1] then return {} end', ''],
      [
        'R-9.6 Redis: fences grow over the loss of the counter',
        'or 0) or 0, time[1] * 1000000 + time[2] - 1)',
        'or 0) or 0, 0)',
      ],
      ['R-9.6 Redis: a renewed claim is not forgotten', 'math.max(lock, record.expires)', 'record.expires'],
      [
        'R-9.6 Redis: a claim that is sent twice is its own',
        "if inflight and string.sub(tail, 1, #record.operation + 1) == record.operation .. '\\\\n' then return '=' .. record.value end",
        '',
      ],
    ],
  },
  {
    file: 'stores/redis/replicas.ts',
    mutants: [['R-10.1 replicated: enough replicas must have it', 'numberOf(count) >= replicas && ', '']],
  },
  {
    file: 'stores/redis/names.ts',
    mutants: [
      ['sessions with lone surrogates stay apart', 'sha256(JSON.stringify(text))', 'sha256(text.toWellFormed())'],
    ],
  },
  {
    file: 'stores/sqlite/records.ts',
    mutants: [
      [
        'R-9.6 SQLite: a delete of another fence is refused',
        '(? IS NULL OR version = ?)',
        '(? IS NULL OR ? IS NOT NULL)',
      ],
      [
        'R-10.2 SQLite: claims that run do not make room',
        '} ORDER BY expires_at LIMIT ?',
        '} OR 1 ORDER BY expires_at LIMIT ?',
      ],
      [
        'R-9.6 SQLite: an outcome of another fence is refused',
        'record?.version === version ? update(ended',
        'record !== undefined ? update(ended',
      ],
      [
        'R-9.6 SQLite: a lease of another fence is not renewed',
        "record?.version !== version || record.state !== 'inflight'",
        "record?.state !== 'inflight'",
      ],
      [
        'R-9.6 SQLite: a claim looks again once it has the lock',
        'if (standing !== undefined && !mayClaim(standing, over, atMs)) return { created: false, record: standing, atMs };',
        '',
      ],
      ['R-9.4 SQLite: who waits hears of other processes', 'if (known !== before) watchers.tellAll();', ''],
    ],
  },
];
