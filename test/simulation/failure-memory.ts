/** What counts as evidence: how many outcomes alike, and for how long. */
interface EvidenceBounds {
  readonly enough: number;
  readonly maxAgeMs: number;
}

/** What is known of failures of one kind, kept here once more: by what was tried, the last outcomes. */
export class Memory {
  readonly #outcomes = new Map<string, Array<{ readonly atMs: number; readonly recovered: boolean }>>();
  readonly #bounds: EvidenceBounds;

  constructor(bounds: EvidenceBounds) {
    this.#bounds = bounds;
  }

  learn(key: string, atMs: number, recovered: boolean): void {
    const outcomes = this.#outcomes.get(key) ?? [];
    this.#outcomes.set(key, [...outcomes, { atMs, recovered }].slice(-this.#bounds.enough));
  }

  isHopeless(key: string, nowMs: number): boolean {
    const { enough, maxAgeMs } = this.#bounds;
    const fresh = (this.#outcomes.get(key) ?? []).filter(({ atMs }) => nowMs - atMs < maxAgeMs);
    return fresh.length >= enough && fresh.every(({ recovered }) => !recovered);
  }

  has(key: string): boolean {
    return (this.#outcomes.get(key)?.length ?? 0) >= this.#bounds.enough;
  }
}
