import type { MutatedFile } from '../mutant.ts';

/** What costs money, or shows one person's to another. Written from the source alone, before looking for tests. */
export const MONEY: readonly MutatedFile[] = [
  {
    file: 'operators/dedupe/stand-ins.ts',
    mutants: [
      ['a note is of one tool', "['stand-in', key, toolName]", "['stand-in', key]"],
      ['the last that had begun is gone on with', 'inherited = name;', 'inherited ??= name;'],
      ['notes are gone with the outcome', '[...lease.standIns.noted].map', '[...lease.standIns.noted].slice(1).map'],
    ],
  },
  {
    file: 'call/attempt/doubt.ts',
    mutants: [
      ['R-18.4 work that had not stopped may still act', 'hasStopped === true && result', 'result'],
      ['R-18.4 its own work may still act', 'context.attempts === 0 && ', ''],
      ['R-18.4 an alternative is not settled by the tool before it', 'result.toolName === tool.name', 'true'],
    ],
  },
  {
    file: 'call/attempt/after-crash.ts',
    mutants: [
      [
        'R-2.5 a retry that another version decided is none of a tool that must not be repeated',
        "uncertain && execution.guarded.effects !== 'read'",
        "false && execution.guarded.effects !== 'read'",
      ],
      [
        'R-18.4 nothing runs without a store where an alternative may have',
        'if (lease === undefined) return refused(context, lapsed());',
        'if (lease === undefined) return wasBegun(execution, attempts$, false);',
      ],
      [
        'R-2.5 an alternative of a safety-critical tool is as critical',
        '[guarded, context.resolved ?? guarded].some',
        '[guarded].some',
      ],
      ['R-18.4 an alternative in doubt is not run again', '!(isMoved || isStandIn)', '!isMoved'],
      [
        'R-18.4 an alternative that begins only now is not in doubt',
        'toolName === lease?.standIns.inherited ?',
        "lease?.standIns.inherited !== toolName + '!' ?",
      ],
    ],
  },
  {
    file: 'call/idempotency.ts',
    mutants: [
      [
        'R-2.5 what ran under a key that has gone is not asked for again',
        'isOpen && isSafetyCritical(context, guarded)',
        'false',
      ],
      [
        'R-2.5 also where it has a verify',
        'isOpen && isSafetyCritical(context, guarded)',
        'isOpen && isSafetyCritical(context, guarded) && guarded.verify === undefined',
      ],
      ['R-2.5 what did not run may be asked for again', 'isOpen && isSafetyCritical(', 'isSafetyCritical('],
      ['R-9.6 other tools may be asked for again', 'isOpen && isSafetyCritical(context, guarded)', 'isOpen'],
    ],
  },
  {
    file: 'operators/dedupe/key-acquisition.ts',
    mutants: [
      ['R-18.4 a takeover is known as one', 'terms, over !== undefined)', 'terms)'],
      [
        'R-9.6 a claim whose answer was late is run only once it is confirmed',
        "(held ? granted(inquiry, lease) : later(inquiry, 'claim', NO_PAUSE))",
        '(held || true ? granted(inquiry, lease) : EMPTY)',
      ],
      [
        'R-10.3 who has waited for another does not run without the store',
        "terms.mode === 'enforced' || waited",
        "terms.mode === 'enforced'",
      ],
      [
        'R-18.4 who cannot take over, and runs, finds out what the one before did',
        'tookOver: uncertain, lost: error',
        'tookOver: false, lost: error',
      ],
      ['R-12.4 who loses sight of another is told of it', 'uncertain ? lostSight(error) : error', 'error'],
    ],
  },
  {
    file: 'operators/dedupe/idempotent.ts',
    mutants: [
      [
        'R-9.6 work whose caller left goes on only for others',
        'lease.isHeld && lease.waitedFor && (run',
        'lease.isHeld && (run',
      ],
    ],
  },
  {
    file: 'gate/passing.ts',
    mutants: [
      [
        'R-22.3 after doubt a person is asked anew',
        "guarded.effects !== 'read' && context.uncertain",
        "guarded.effects === 'read' && context.uncertain",
      ],
      [
        'R-22.2 an answer that another has used lets nothing pass',
        "reservation?.ended('did_not_run');\n          return steps.again();",
        "reservation?.ended('did_not_run');\n          return steps.run();",
      ],
      [
        'R-22.6 a retry is no further call',
        'this.#budget.reserved(attempt, !attempt.isCounted)',
        'this.#budget.reserved(attempt, true)',
      ],
    ],
  },
  {
    file: 'gate/approvals.ts',
    mutants: [
      ['R-22.2 an answer is for one input', 'used.print === print && ', ''],
      ['R-22.2 an answer that was used counts for its time', ' && used.untilMs > this.#site.runtime.now()', ''],
      [
        'R-22.2 an input that changed while an answer was used up lets nothing pass',
        '!this.#isAsDecided(subject) || leftMs === undefined',
        'leftMs === undefined',
      ],
    ],
  },
  {
    file: 'layer/shared-breakers/breaker.ts',
    mutants: [
      [
        'R-3.10 a probe that never ran is no good one',
        "this.probeEnded(probe, 'ignored', undefined)",
        "this.probeEnded(probe, 'success', undefined)",
      ],
      ['R-3.10 a probe of an older generation changes nothing', 'seen?.origin !== probe.origin', 'seen === undefined'],
      [
        'R-3.10 a probe whose claim got no answer is refused',
        'error: () => asker.answer(this.#reject(next)),',
        'error: () => asker.answer(this.#admitHere(asker.by)),',
      ],
    ],
  },
  {
    file: 'gateway/anthropic/restore.ts',
    mutants: [
      ['R-13.6 the user tells two conversations apart', '[systemOf(system), user, model]', '[systemOf(system), model]'],
      [
        'R-13.6 what is shown tells two conversations apart',
        "keyOf(scope, 'said', chain.whole)",
        "keyOf(scope, 'said', chain.ids)",
      ],
    ],
  },
  {
    file: 'saga/undo.ts',
    mutants: [
      [
        'R-18.5 an undoing that may have taken effect is told as half done',
        'isDone && problem?.uncertain === true',
        'isDone && problem === undefined',
      ],
      ['R-18.12 an undoing that may have taken effect is not tried again', '!error.uncertain &&\n', '\n'],
    ],
  },
  {
    file: 'saga/undo-call.ts',
    mutants: [
      ['R-18.5 another tool undoes once', '{ hints: { safetyCritical: true } }', '{}'],
      ['R-18.5 two calls are undone as two', '`undo:${toolName}:${callId}`', '`undo:${toolName}`'],
    ],
  },
  {
    file: 'adapters/guarded/tool-failure.ts',
    mutants: [
      [
        'R-2.5 a framework does not retry what the layer has',
        '{ value: false, configurable',
        '{ value: true, configurable',
      ],
    ],
  },
  {
    file: 'adapters/guarded/calls.ts',
    mutants: [
      [
        'R-2.5 tools of a framework are mutating on a layer of their own',
        "defaults: { effects: 'mutating', ...options.defaults }",
        'defaults: { ...options.defaults }',
      ],
      ['R-2.5 tools of a framework are mutating on a shared layer', 'foreign(tool({ name,', '(tool({ name,'],
      ['what ends a call ends its tool', 'subscription.unsubscribe();\n', '\n'],
      [
        'R-2.5 a guarded client calls no tool again that does more by now',
        'if (context.attempt > 1 && !(await stillReads(context.signal))) throw mayHaveActed();',
        '',
      ],
    ],
  },
  {
    file: 'policy/mcp-hints.ts',
    mutants: [
      [
        'R-6.1 no alternative is called in the place of what may have acted by now',
        "('blocked', message",
        "('execution_error', message",
      ],
    ],
  },
  {
    file: 'providers/mcp.ts',
    mutants: [
      ['R-2.5 a provider calls no tool again that does more by now', 'tool.reads && context.attempt > 1', 'false'],
      [
        'R-2.5 what changed is listed before a tool is called again',
        'await link.renew(live)',
        'await Promise.resolve()',
      ],
    ],
  },
  {
    file: 'providers/mcp/mutating-names.ts',
    mutants: [
      [
        'R-2.5 a tool that was once listed as mutating stays it',
        'if (effectsOfHints',
        'this.#names.delete(name); if (effectsOfHints',
      ],
    ],
  },
  {
    file: 'providers/mcp/tool-list.ts',
    mutants: [['R-2.5 the host’s own policy of a tool goes before', "read(this, 'policy') === made.policy", 'true']],
  },
  {
    file: 'adapters/guarded/finished.ts',
    mutants: [['R-2.5 only what does not fit its schema is refused', 'if (mismatch === undefined) return;', '']],
  },
];
