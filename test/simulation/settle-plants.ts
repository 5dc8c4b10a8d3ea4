import type { Plant } from './plant.ts';

/** What goes wrong where doubt is settled, and turns undo what they did. */
export const SETTLE_PLANTS: Readonly<Record<string, Plant>> = {
  'not done is believed at once': {
    scenario: 'settle',
    file: 'call/attempt/verification.ts',
    find: 'return verify.settleMs === 0 ? of',
    replace: 'return verify.settleMs >= 0 ? of',
    seeds: 500,
    by: ['SET-1', 'SET-2', 'SET-3'],
  },
  'not done is believed while the attempt goes on': {
    scenario: 'settle',
    file: 'call/attempt/verification.ts',
    find: 'if (!hasStopped) return',
    replace: 'if (!hasStopped && !hasStopped.valueOf) return',
    seeds: 500,
    by: ['SET-1', 'SET-2', 'SET-3'],
  },
  'what is not known counts as not done': {
    scenario: 'settle',
    file: 'saga/doubt.ts',
    find: "if (finding === 'unknown') return message;",
    replace: "if (finding === 'unknown') { entry.state = 'not_done'; return undefined; }",
    seeds: 500,
    by: ['SET-2', 'SET-3'],
  },
  'a call begins before it is kept': {
    scenario: 'settle',
    file: 'saga/saga.ts',
    find: 'return this.record.written(entry).pipe(\n      catchError((error: unknown) => {',
    replace: 'return of(undefined).pipe(\n      catchError((error: unknown) => {',
    seeds: 500,
    by: ['SET-2', 'SET-3', 'SET-5'],
  },
  'a turn that completed is not kept as that': {
    scenario: 'settle',
    file: 'saga/saga.ts',
    find: "this.record.journal.state = 'completed';",
    replace: '',
    seeds: 1_000,
    by: ['SET-2', 'SET-3', 'SET-4'],
  },
  'an end is forgotten before it is told': {
    scenario: 'settle',
    file: 'saga/undo.ts',
    find: "  journal.state = 'over';\n",
    replace: "  journal.state = 'over';\n  record.told();\n",
    seeds: 1_000,
    by: ['SET-2', 'SET-3', 'SET-4', 'SET-5'],
  },
};
