import type { MutatedFile } from '../mutant.ts';

/** The pure decisions. Written from the source alone, before looking which tests there are. */
export const POLICY: readonly MutatedFile[] = [
  {
    file: 'policy/retry/backoff.ts',
    mutants: [
      [
        'R-2.1 an initial delay above the default cap raises the cap',
        'Math.max(policy.maxDelayMs, policy.initialDelayMs)',
        'policy.maxDelayMs',
      ],
      ['R-2.1 jitter goes both ways', '(2 * random() - 1)', 'random()'],
      [
        'R-2.2 jitter comes after the cap',
        'return spread(cappedMs());',
        'return Math.min(maxDelayMs, spread(initialDelayMs * power(multiplier, retry)));',
      ],
      [
        'R-2.1 decorrelated delays grow from the one before',
        '3 * (previousDelayMs ?? initialDelayMs)',
        '3 * initialDelayMs',
      ],
      [
        'R-2.1 full jitter begins at nothing',
        'return random() * cappedMs();',
        'return ((1 + random()) / 2) * cappedMs();',
      ],
      ['R-2.1 the first retry waits the initial delay', 'power(multiplier, retry)', 'power(multiplier, retry + 1)'],
    ],
  },
  {
    file: 'policy/key/claim.ts',
    mutants: [
      [
        'R-9.5 other parameters under one key are a conflict',
        '!own || record.request.paramsDigest !== request.paramsDigest',
        '!own',
      ],
      [
        'R-2.5 what must not be done twice does not follow on a lost owner',
        "return neverTwice ? { act: 'refuse', because: 'uncertain' } : {",
        'return {',
      ],
      ['R-2.5 nor on a failure that may have taken effect', ' && !(neverTwice && record.error.uncertain === true)', ''],
      ['R-9.4 a final failure is replayed', 'record.error?.shouldRetriable === true', 'record.error !== undefined'],
      [
        'R-9.4 best effort is refused at once while another runs',
        "mode === 'enforced' ? { act: 'wait' }",
        "mode !== 'disabled' ? { act: 'wait' }",
      ],
      [
        'R-9.4 a canceled call has to be cleared first',
        "return { act: 'refuse', because: 'cancelled' };",
        "return { act: 'take_over', version: record.version };",
      ],
    ],
  },
  {
    file: 'policy/breaker/window.ts',
    mutants: [
      [
        'R-3.2 failures in a row that are too old do not count',
        'streakMs.filter((failedAtMs) => failedAtMs >= fromMs)',
        'streakMs',
      ],
      [
        'R-3.9 a slow call counts for the rate',
        "const failed = outcome === 'failure' || slow;",
        "const failed = outcome === 'failure';",
      ],
      [
        'R-3.2 an outcome that leaves the window is forgotten',
        ' - (full && outcomes[oldest]?.failed === true ? 1 : 0)',
        '',
      ],
      ['R-3.2 a success ends the row of failures', ': NO_STREAK,', ': streakMs,'],
      [
        'R-3.2 ten measured outcomes are enough',
        'measured >= settings.minimumCalls',
        'measured > settings.minimumCalls',
      ],
      [
        'R-3.2 half of the outcomes are enough',
        'window.failures / measured >= settings.failureRate',
        'window.failures / measured > settings.failureRate',
      ],
      ['R-3.2 a gap in traffic expires old outcomes', '= expireOutcomes(window, settings, atMs);', '= window;'],
    ],
  },
  {
    file: 'policy/breaker/settings.ts',
    mutants: [
      [
        'R-2.9 minimumCalls is by default no more than the window',
        'minimumCalls: Math.min(10, chosen.windowSize)',
        'minimumCalls: 10',
      ],
      [
        'R-3.5 half-open lasts by default as long as the cooldown',
        'Math.max(HALF_OPEN_TIMEOUT_MS, chosen.cooldownMs)',
        'HALF_OPEN_TIMEOUT_MS',
      ],
      [
        'R-3.11 a cooldown above the default maximum raises it',
        'Math.max(COOLDOWN_MAX_MS, chosen.cooldownMs)',
        'COOLDOWN_MAX_MS',
      ],
    ],
  },
  {
    file: 'policy/breaker/reducer.ts',
    mutants: [
      [
        'R-3.11 the first cooldown is not multiplied',
        'power(settings.cooldownMultiplier, memory.openings)',
        'power(settings.cooldownMultiplier, memory.openings + 1)',
      ],
      ['R-3.11 cooldowns go on growing', 'openings: memory.openings + 1', 'openings: 1'],
      [
        'R-3.11 a closed breaker begins anew with its cooldown',
        'window: emptyWindow, openings: 0 }',
        'window: emptyWindow }',
      ],
      [
        'R-3.5 so many probes at a time and no more',
        'memory.probesOut < settings.probes',
        'memory.probesOut <= settings.probes',
      ],
      ['R-3.9 a ramp admits some from its first instant', 'Math.max(RAMP_SHARE_MIN, ', 'Math.max(0, '],
      [
        'R-3.6 outcomes of an older generation change nothing',
        "permit.generation !== now.generation || outcome === 'ignored'",
        "outcome === 'ignored'",
      ],
      [
        'R-3.5 a revoked probe gives no place back',
        'permit.probeEpoch !== memory.probeEpoch',
        'permit.probeEpoch === undefined',
      ],
      [
        'R-3.2 only a failure opens',
        "(outcome === 'failure' || slow) && tripped(window, settings)",
        'tripped(window, settings)',
      ],
      [
        'R-3.5 good probes count in a row',
        'generation: memory.generation + 1, goodProbes: 0, extraProbes: 0 }',
        'generation: memory.generation + 1, extraProbes: 0 }',
      ],
      [
        'R-3.5 half-open ends so long after its last admission',
        'probesOut: memory.probesOut + 1, lastProbeAtMs: atMs',
        'probesOut: memory.probesOut + 1',
      ],
      [
        'R-3.5 half-open without a probe waits',
        "memory.type === 'half_open' && memory.probesOut > 0",
        "memory.type === 'half_open'",
      ],
    ],
  },
  {
    file: 'policy/retry/latency.ts',
    mutants: [
      ['the 95th of a hundred is the 95th', 'Math.ceil(share * sorted.length) - 1', 'Math.ceil(share * sorted.length)'],
      ['the latest durations count', 'next = (next + 1) % size', 'next = Math.min(next + 1, size - 1)'],
      ['the minimum of samples is enough', 'durations.length < minimum', 'durations.length <= minimum'],
    ],
  },
  {
    file: 'policy/retry/budget.ts',
    mutants: [
      [
        'R-2.6 the floor is not multiplied by the ratio',
        'ratio * calls.count(now) + floor',
        'ratio * (calls.count(now) + floor)',
      ],
      [
        'R-2.6 a retry is let go of late',
        'new WindowCount(windowMs, Math.ceil)',
        'new WindowCount(windowMs, Math.floor)',
      ],
      [
        'R-2.6 what happened a window ago is outside of it',
        'oldest.at <= at - this.#windowSlots',
        'oldest.at < at - this.#windowSlots',
      ],
      ['R-2.6 none left is none available', 'left(now) > 0', 'left(now) >= 0'],
    ],
  },
  {
    file: 'policy/recovery/experience.ts',
    mutants: [
      ['R-6.4 one recovery keeps hope', 'tally.tried >= enough && tally.recovered === 0', 'tally.tried >= enough'],
      ['R-6.4 the latest outcomes count', '.slice(-enough)', '.slice(0, enough)'],
      ['R-6.4 what is too old counts no longer', 'outcomeAtMs > atMs - maxAgeMs', 'outcomeAtMs <= atMs'],
      ['R-6.4 a share of retries is made against the evidence', 'random() < exploreShare', 'random() < 0'],
      ['R-6.4 failures of another status are other failures', 'status ?? code ?? null', 'code ?? null'],
      [
        'R-6.4 the one met longest ago is forgotten first',
        'memory.delete(key);\n    memory.set(key, entry);',
        'memory.set(key, entry);',
      ],
    ],
  },
  {
    file: 'policy/breaker/outcome.ts',
    mutants: [
      ['R-3.3 a cancellation is neutral', "'canceled', 'circuit_open',", "'circuit_open',"],
      ['R-3.3 a permanent answer counts as a success', "? 'answered' : 'success'", "? 'answered' : 'ignored'"],
      ['R-3.3 what gave no answer is no success', '!error.executed || UNANSWERED.has(error.kind)', '!error.executed'],
    ],
  },
  {
    file: 'policy/recovery/cascade.ts',
    mutants: [
      [
        'R-5.3 a default comes before skipping',
        "if (node.hasDefault) return 'use_default';\n  return node.optional ?",
        "return !node.optional && node.hasDefault ? 'use_default' : node.optional ?",
      ],
      ['R-5.3 a default is a value', "state === 'succeeded' || state === 'defaulted'", "state === 'succeeded'"],
      [
        'R-5.5 what its dependents make up for is not missing',
        "(state === 'failed' && !covered)",
        "state === 'failed'",
      ],
      ['R-5.5 a turn in which nothing ran has failed', "if (ran === 0) return 'failed';", ''],
    ],
  },
  {
    file: 'policy/recovery/classify.ts',
    mutants: [
      [
        'R-1.3 structure goes before the class that the entrance gave',
        'if (structural !== undefined) return structural;',
        'if (structural !== undefined && classification === undefined) return structural;',
      ],
      ['R-1.4 a kind can be overridden', 'String(status), code, kind]', 'String(status), code]'],
    ],
  },
  {
    file: 'policy/recovery/guidance.ts',
    mutants: [
      ['R-6.3 costs from this amount on', '(failure.cost ?? 0) >= costFrom', '(failure.cost ?? 0) > costFrom'],
      ['R-6.3 attempts from this one on', 'failure.attempt >= attemptFrom', 'failure.attempt > attemptFrom'],
      [
        'R-6.3 what cannot be forced leaves the others',
        'if (forced.length > 0) return forced;',
        'if (force !== undefined) return forced;',
      ],
      [
        'R-6.3 a rule for some kinds is for no others',
        '(kinds === undefined || kinds.includes(failure.error.kind)) &&',
        '',
      ],
      [
        'R-6.3 what is forbidden is not done',
        'possible.filter(({ strategy }) => !forbid.includes(strategy))',
        'possible.slice()',
      ],
    ],
  },
  {
    file: 'policy/recovery/decide.ts',
    mutants: [
      ['R-6.1 a conflict has no alternative', "'not_permitted', 'conflict']", "'not_permitted']"],
      ['R-6.1 what the turn needs is escalated', 'RecoveryStrategy[] = required ?', 'RecoveryStrategy[] = !required ?'],
      ['R-6.1 no alternative after what may have taken effect', '!mayBeDoneElsewhere(failure) && !WITHOUT', '!WITHOUT'],
      [
        'R-2.3 a wait up to the end of the turn is too long',
        'retryDelayMs(failure) >= turnRemainingMs',
        'retryDelayMs(failure) > turnRemainingMs',
      ],
    ],
  },
  {
    file: 'policy/recovery/objection.ts',
    mutants: [
      [
        'R-6.1 a handler has no more attempts than there are',
        'if (code !== undefined) return {',
        "if (code !== undefined && code !== 'attempts_exhausted') return {",
      ],
      [
        'R-2.6 nor more retries than all calls share',
        'if (code !== undefined) return {',
        "if (code !== undefined && code !== 'budget_exhausted') return {",
      ],
      [
        'R-2.3 nor more time',
        '{ ...failure, nextDelayMs: delayMs }',
        '{ ...failure, elapsedMs: 0, nextDelayMs: delayMs }',
      ],
    ],
  },
  {
    file: 'policy/retry/refusal.ts',
    mutants: [
      ['R-2.4 a hint is a floor under the delay', 'retryAfterMs > nextDelayMs ?', 'retryAfterMs > 0 ?'],
      ['R-2.1 maxAttempts counts the first attempt', 'attempt >= maxAttempts', 'attempt > maxAttempts'],
      [
        'R-2.3 no attempt starts at maxTotalTimeMs',
        'elapsedMs + nextDelayMs >= maxTotalTimeMs',
        'elapsedMs + nextDelayMs > maxTotalTimeMs',
      ],
      [
        'R-2.5 safetyCritical forces the refusal',
        '(safetyCritical !== true && (hasIdempotencyKey || retrySafe))',
        '(hasIdempotencyKey || retrySafe)',
      ],
      ['R-2.4 an unreadable hint means no retry', '!(hintMs >= 0)', 'hintMs < 0'],
      ['R-2.5 no retry when the breaker is open', "failure.breakerState === 'open' || ", ''],
      [
        'R-2.4 a hint beyond the total time ends the call at once',
        'elapsedMs + retryDelayMs(failure) >= maxTotalTimeMs',
        'maxTotalTimeMs < 0',
      ],
    ],
  },
  {
    file: 'policy/key/call-key.ts',
    mutants: [
      [
        "R-9.1 the caller's key goes before a hook's",
        'const given = idempotencyKey ?? hookKey;',
        'const given = hookKey ?? idempotencyKey;',
      ],
      [
        'R-9.1 a given key is not scoped by actor',
        "scope === 'session' && given === undefined ? actorId",
        "scope === 'session' ? actorId",
      ],
      [
        'R-9.1 tenants do not share keys',
        'scope, tenantId, namespace, toolName, session, actor',
        'scope, namespace, toolName, session, actor',
      ],
      ['R-9.3 a global key is shared by sessions', "scope === 'session' ? sessionKey : undefined", 'sessionKey'],
      ['R-9.1 nobody can name a computed key', "given === undefined ? 'computed' : 'given'", "'key'"],
    ],
  },
  {
    file: 'policy/key/canonical-json.ts',
    mutants: [
      [
        'R-9.2 volatile fields are those of the outermost object',
        'depth === 0 && this.#volatile.includes(name)',
        'this.#volatile.includes(name)',
      ],
      ['R-9.2 integers that may have been two are refused', '&& !this.#keepIntegers)', '&& this.#keepIntegers)'],
      [
        'R-9.2 many names are sorted by code units',
        'return names.toSorted();',
        'return names.toSorted((a, b) => a.localeCompare(b));',
      ],
      [
        'R-9.2 collapsed white space is none at the ends',
        "replaceAll(/\\s+/g, ' ').trim()",
        "replaceAll(/\\s+/g, ' ')",
      ],
    ],
  },
  {
    file: 'policy/redact/text.ts',
    mutants: [
      ['R-11.4 a secret on the edge of the cut is seen whole', 'SCANNED_MAX = 2 * TEXT_MAX', 'SCANNED_MAX = TEXT_MAX'],
      [
        'R-11.4 a secret in URL-safe base64 is removed',
        "[form, form.replaceAll('+', '-').replaceAll('/', '_')]",
        '[form]',
      ],
    ],
  },
  {
    file: 'policy/profile.ts',
    mutants: [
      [
        'R-3.12 in the resilient profile what only reads has the patient breaker',
        "effects === 'read' ? {",
        "effects === 'mutating' ? {",
      ],
      ['R-10.2 a failure is remembered for five minutes', 'failedTtlMs: 300_000', 'failedTtlMs: 24 * 3_600_000'],
    ],
  },
  {
    file: 'policy/model-text.ts',
    mutants: [
      [
        'R-12.4 a model is told whether the tool ran where its kind says otherwise',
        'else if (said !== effect)',
        'else if (said === undefined)',
      ],
      ['R-12.4 no result is empty', 'output === null || !/\\S/.test(text)', 'output === null'],
    ],
  },
  {
    file: 'policy/recovery/escalation.ts',
    mutants: [
      [
        'R-6.5 a person is asked to check what may have taken effect',
        "error.uncertain ? ['check_whether_it_took_effect' as const] : []",
        '[]',
      ],
    ],
  },
];
