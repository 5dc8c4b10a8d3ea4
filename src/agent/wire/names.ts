/** What providers take as the name of a tool or the id of a call. */
const ALLOWED = /^[a-zA-Z0-9_-]+$/;

/**
 * Names as a provider takes them, each its own: `files.read` is `files_read` on the wire, and the next one that would
 * be too gets a number.
 */
export class WireNames {
  readonly #maxLength: number;
  readonly #wire = new Map<string, string>();
  readonly #own = new Map<string, string>();

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** The name on the wire, the same each time. */
  wire(name: string): string {
    const known = this.#wire.get(name);
    if (known !== undefined) return known;
    const allowed =
      ALLOWED.test(name) && name.length <= this.#maxLength
        ? name
        : name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, this.#maxLength) || '_';
    const wire = this.#own.has(allowed) ? this.#numbered(allowed) : allowed;
    this.#wire.set(name, wire);
    this.#own.set(wire, name);
    return wire;
  }

  /** The name that a name on the wire stands for; one that was never given out stands for itself. */
  own(wire: string): string {
    return this.#own.get(wire) ?? wire;
  }

  #numbered(stem: string): string {
    for (let number = 2; ; number++) {
      const suffix = `_${number}`;
      const name = `${stem.slice(0, this.#maxLength - suffix.length)}${suffix}`;
      if (!this.#own.has(name)) return name;
    }
  }
}

/**
 * Ids of calls as a provider takes them, unique in the whole transcript. Calls and results must be asked for in order,
 * each result after its call.
 */
export class WireIds {
  readonly #taken = new Set<string>();
  /** Of the step in hand, by own id. */
  #step = new Map<string, string>();

  /** A message with calls begins: ids may come again. */
  nextStep(): void {
    this.#step = new Map();
  }

  call(id: string): string {
    const stem = ALLOWED.test(id) ? id : id.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || 'call';
    let wire = stem;
    for (let number = this.#taken.size + 1; this.#taken.has(wire); number++) wire = `${stem}_${number}`;
    this.#taken.add(wire);
    this.#step.set(id, wire);
    return wire;
  }

  result(id: string): string {
    return this.#step.get(id) ?? id;
  }
}
