import type { Entry } from './ledger.ts';

/** From one moment to another. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What the supervisor saw. */
export interface Observed {
  /** When processes stood still. */
  readonly frozen: ReadonlyMap<number, readonly Span[]>;
  /** When Redis was down. */
  readonly outages: readonly Span[];
  /** Whether Redis keeps nothing over a restart: then what ran before one may run again after it. */
  readonly forgetful: boolean;
  /** Answers with a value, when they were asked for and whether it was a stored one. */
  readonly answers: ReadonlyArray<{
    readonly key: string;
    readonly askedAtMs: number;
    readonly fence: number;
    readonly fromCache: boolean;
  }>;
}

export interface Verdict {
  readonly violations: readonly string[];
  /**
   * Executions of claims that were lost with Redis' memory, and others that run beside them: what the weaker promise
   * allows.
   */
  readonly forgotten: number;
  /** Effects that began after the lease was over, since the process stood still between the check and the effect. */
  readonly excused: number;
  readonly executions: number;
  readonly claims: number;
  readonly takeovers: number;
  readonly recorded: number;
}

interface Claim {
  readonly fence: number;
  readonly atMs: number;
  untilMs: number;
  /** When its holder was about to end it. */
  endingAtMs: number;
}

/** Redis counts whole milliseconds. */
const STEP_MS = 1;
/** A process that has just been woken goes on where it stood. */
const WAKING_MS = 500;

const holdsUntil = ({ untilMs, endingAtMs }: Claim): number => Math.min(untilMs, endingAtMs);

const claimsOf = (entries: readonly Entry[]): Map<number, Claim> => {
  const claims = new Map<number, Claim>();
  for (const entry of entries) {
    if (entry.what === 'claimed')
      claims.set(entry.fence, { fence: entry.fence, atMs: entry.atMs, untilMs: entry.untilMs, endingAtMs: Infinity });
    const claim = claims.get(entry.fence);
    if (claim === undefined) continue;
    if (entry.what === 'renewed') claim.untilMs = Math.max(claim.untilMs, entry.untilMs);
    if (entry.what === 'ending') claim.endingAtMs = Math.min(claim.endingAtMs, entry.atMs);
  }
  return claims;
};

/** Reads the ledger of all processes and says what must not have happened. */
export function checkLedger(entries: readonly Entry[], { frozen, outages, forgetful, answers }: Observed): Verdict {
  const violations: string[] = [];
  let forgotten = 0;
  let excused = 0;
  const byKey = Map.groupBy(entries, ({ key }) => key);
  const lostBetween = (fromMs: number, toMs: number): boolean =>
    forgetful && outages.some((outage) => outage.fromMs <= toMs && outage.toMs >= fromMs);

  for (const [key, own] of byKey) {
    const claims = claimsOf(own);
    const ordered = [...claims.values()].toSorted((a, b) => a.fence - b.fence);
    for (const [place, claim] of ordered.entries()) {
      const before = ordered[place - 1];
      if (before === undefined || claim.atMs + STEP_MS >= holdsUntil(before)) continue;
      if (lostBetween(before.atMs, claim.atMs)) forgotten++;
      else
        violations.push(
          `${key} was claimed (${claim.fence}) at ${claim.atMs}, ${holdsUntil(before) - claim.atMs} ms before the lease of ${before.fence} was over`,
        );
    }
    for (const entry of own) {
      if (entry.what !== 'started') continue;
      if (!claims.has(entry.fence))
        violations.push(`${key} was executed under ${entry.fence}, which nobody was granted`);
      const other = ordered.find(
        (claim) =>
          claim.fence > entry.fence && claim.atMs + STEP_MS < entry.atMs && entry.atMs + STEP_MS < holdsUntil(claim),
      );
      if (other === undefined) continue;
      const woken = (frozen.get(entry.pid) ?? []).some(
        ({ fromMs, toMs }) => fromMs <= entry.atMs && entry.atMs <= toMs + WAKING_MS,
      );
      if (lostBetween(claims.get(entry.fence)?.atMs ?? 0, entry.atMs)) forgotten++;
      else if (woken) excused++;
      else
        violations.push(
          `${key} was executed under ${entry.fence} at ${entry.atMs}, while ${other.fence} held a valid lease`,
        );
    }
    const outcomes = own.filter((entry) => entry.what === 'recorded').toSorted((a, b) => a.version - b.version);
    for (const [place, { fence, version }] of outcomes.entries()) {
      const newer = outcomes[place - 1];
      if (newer !== undefined && newer.fence >= fence)
        violations.push(
          `${key}: the stale outcome of ${fence} (version ${version}) overwrote that of ${newer.fence} (version ${newer.version})`,
        );
    }
  }

  const recorded = Map.groupBy(
    entries.filter((entry) => entry.what === 'recorded' && entry.value !== undefined),
    ({ key }) => key,
  );
  for (const { key, askedAtMs, fence, fromCache } of answers) {
    if (!fromCache) continue;
    const newest = (recorded.get(key) ?? []).reduce(
      (most, entry) => (entry.atMs < askedAtMs ? Math.max(most, entry.fence) : most),
      0,
    );
    if (fence < newest)
      violations.push(
        `${key}: a call asked at ${askedAtMs} was given the result of ${fence}, and ${newest} was recorded before`,
      );
  }
  const count = (what: Entry['what']): number => entries.filter((entry) => entry.what === what).length;
  const takeovers = entries.filter((entry) => entry.what === 'claimed' && entry.over).length;
  return {
    violations,
    forgotten,
    excused,
    executions: count('started'),
    claims: count('claimed'),
    takeovers,
    recorded: count('recorded'),
  };
}
