import { combinations, type Meter, type MeterName } from './tool-meters.ts';

/** An exemplar: one call that was measured, by its trace. */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly value: number;
  /** When it was measured, in milliseconds since the epoch. */
  readonly wallMs: number;
}

/**
 * The numbers of one tool, or of all turns: those of all its meters in one array, since ten thousand tools have two
 * million of them. Where each stands is the layouts' to know.
 */
export class SeriesTally {
  /** Its own label, as it is written; empty for turns. */
  readonly label: string;
  readonly values: Float64Array;
  /** By the place of the number that they are examples of. */
  readonly exemplars: Map<number, Exemplar> = new Map();
  /** Calls in flight. */
  running: number = 0;

  constructor(label: string, size: number) {
    this.label = label;
    this.values = new Float64Array(size);
  }
}

/** How the lines of a format differ from those of the other. */
export interface Wording {
  readonly exemplars: boolean;
  /** Of the values, and of the edges of the buckets. Default 1. */
  readonly scale?: number;
}

export const escaped = (text: string): string =>
  text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);

export const labelled = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');

/**
 * As OpenMetrics wants the edge of a bucket to be written. In both formats: a series must not change its name with the
 * format.
 */
const edge = (bound: number): string => (Number.isInteger(bound) ? `${bound}.0` : `${bound}`);

const braced = (...labels: readonly string[]): string => {
  const some = labels.filter((label) => label !== '');
  return some.length === 0 ? '' : `{${some.join(',')}}`;
};

const exemplarOf = (exemplar: Exemplar | undefined, scale: number): string => {
  if (exemplar === undefined) return '';
  const { traceId, spanId, value, wallMs } = exemplar;
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${value * scale} ${(wallMs / 1000).toFixed(3)}`;
};

/**
 * Stands for a tally's label in the lines of a series that nothing was added to. Most series are such, and their lines
 * differ in nothing else: what is made of them once is filled in for each tool, at a tenth of the work and the garbage.
 */
const ITS_LABEL = '\0';

/** Where the numbers of one meter stand in a tally, and how they are written. */
export class Layout {
  readonly meter: Meter;
  readonly name: MeterName;
  /** How many numbers it takes. */
  readonly size: number;
  readonly #offset: number;
  /** Numbers of one series: of a histogram its buckets, and the sum. */
  readonly #width: number;
  readonly #buckets: readonly number[];
  /** The place of each combination of labels. */
  readonly #places = new Map<string, number>();
  readonly #labels: readonly string[];

  constructor(name: MeterName, meter: Meter, offset: number) {
    this.name = name;
    this.meter = meter;
    this.#offset = offset;
    this.#buckets = meter.buckets ?? [];
    this.#width = meter.kind === 'counter' ? 1 : this.#buckets.length + 2;
    const rows = combinations(meter.labels);
    const names = Object.keys(meter.labels);
    rows.forEach((row, place) => this.#places.set(row.join(' '), place));
    this.#labels = rows.map((row) =>
      labelled(Object.fromEntries(row.map((value, place) => [names[place] ?? '', value]))),
    );
    this.size = rows.length * this.#width;
  }

  /** What has labels that the meter does not know is left out: its series would be one that nobody expects. */
  add(tally: SeriesTally, labels: readonly string[], value: number, exemplar: Exemplar | undefined): void {
    const place = this.#places.get(labels.join(' '));
    if (place === undefined) return;
    const { values } = tally;
    let at = this.#offset + place * this.#width;
    if (this.meter.kind === 'counter') values[at] = (values[at] ?? 0) + value;
    else {
      const sum = at + this.#width - 1;
      values[sum] = (values[sum] ?? 0) + value;
      const found = this.#buckets.findIndex((bound) => value <= bound);
      at += found === -1 ? this.#buckets.length : found;
      values[at] = (values[at] ?? 0) + 1;
    }
    if (exemplar !== undefined) tally.exemplars.set(at, exemplar);
  }

  /**
   * Its lines of some tallies, one at a time: what is due in between may change the next ones, never a histogram that
   * is half written.
   */
  *lines(tallies: Iterable<SeriesTally>, name: string, wording: Wording): Generator<string> {
    const unused = new SeriesTally(ITS_LABEL, this.#offset + this.size);
    const unusedParts = this.#labels.map((_, place) => this.#series(unused, place, name, wording).split(ITS_LABEL));
    for (const tally of tallies) {
      let text = '';
      unusedParts.forEach((parts, place) => {
        text +=
          tally.label === '' || this.#isUsed(tally, place)
            ? this.#series(tally, place, name, wording)
            : parts.join(tally.label);
      });
      yield text;
    }
  }

  #isUsed({ values }: SeriesTally, place: number): boolean {
    const from = this.#offset + place * this.#width;
    for (let at = from; at < from + this.#width; at++) if (values[at] !== 0) return true;
    return false;
  }

  #series(tally: SeriesTally, place: number, name: string, wording: Wording): string {
    const at = this.#offset + place * this.#width;
    const labels = this.#labels[place] ?? '';
    return this.meter.kind === 'counter'
      ? this.#counter(tally, at, name, labels, wording)
      : this.#histogram(tally, at, name, labels, wording);
  }

  #counter(
    { label, values, exemplars }: SeriesTally,
    at: number,
    name: string,
    labels: string,
    wording: Wording,
  ): string {
    const example = wording.exemplars ? exemplarOf(exemplars.get(at), 1) : '';
    return `${name}${braced(label, labels)} ${values[at] ?? 0}${example}\n`;
  }

  #histogram(
    { label, values, exemplars }: SeriesTally,
    at: number,
    name: string,
    labels: string,
    wording: Wording,
  ): string {
    const { scale = 1 } = wording;
    const own = braced(label, labels);
    const open = own === '' ? '{' : `${own.slice(0, -1)},`;
    const last = this.#buckets.length;
    let text = '';
    let below = 0;
    for (let bucket = 0; bucket <= last; bucket++) {
      below += values[at + bucket] ?? 0;
      const bound = this.#buckets[bucket];
      const example = wording.exemplars ? exemplarOf(exemplars.get(at + bucket), scale) : '';
      text += `${name}_bucket${open}le="${bound === undefined ? '+Inf' : edge(bound * scale)}"} ${below}${example}\n`;
    }
    return `${text}${name}_sum${own} ${(values[at + last + 1] ?? 0) * scale}\n${name}_count${own} ${below}\n`;
  }
}

/** The layouts of some meters, one behind the other. */
export class Layouts<Name extends MeterName> {
  readonly #byName = new Map<MeterName, Layout>();
  /** How many numbers a tally of them has. */
  readonly size: number;

  constructor(meters: Readonly<Record<Name, Meter>>) {
    let size = 0;
    for (const [name, meter] of Object.entries<Meter>(meters)) {
      const layout = new Layout(name as Name, meter, size);
      this.#byName.set(layout.name, layout);
      size += layout.size;
    }
    this.size = size;
  }

  get all(): Iterable<Layout> {
    return this.#byName.values();
  }

  get(name: MeterName): Layout | undefined {
    return this.#byName.get(name);
  }
}
