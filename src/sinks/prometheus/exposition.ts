import { Breathing } from '../../operators/breath.ts';

/** The two formats that a scrape may ask for. */
export type Format = 'text' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** All that a scrape is told under one name. */
export interface MetricFamily {
  /** As it is in Prometheus' text; a counter's ends with `_total`, an info's with `_info`. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram' | 'info';
  readonly help: string;
  readonly unit?: 'seconds' | 'ratio';
  /**
   * Some of them at a time, each as a text of its own. They are bare strings, since V8 may come to allocate an object
   * that is made this often among those that live long, where it holds its text until the next full collection.
   */
  readonly lines: Iterable<string>;
}

/** Characters of a piece, some 600 lines; the last tool's may make it some more. */
const CHARACTERS_MAX = 64 * 1024;

const TEXT = 'text/plain';
const OPEN_METRICS = 'application/openmetrics-text';

/**
 * How much a media type is wanted, 0 to 1. Of several ranges that name it the greatest counts, which is what scrapers
 * mean.
 */
const wanted = (accept: string, type: string): number => {
  const weights = accept.split(',').map((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const version = parameters.find((parameter) => parameter.startsWith('version='))?.slice('version='.length);
    if (name !== type || (type === OPEN_METRICS && version !== undefined && version !== '1.0.0')) return 0;
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    return Number.isFinite(weight) ? weight : 0;
  });
  return Math.max(0, ...weights);
};

/**
 * OpenMetrics for who names it and wants nothing else more; Prometheus' text for everyone else, a browser among them.
 */
export function formatFor(accept: string | null | undefined): Format {
  const weight = wanted(accept ?? '', OPEN_METRICS);
  return weight > 0 && weight >= wanted(accept ?? '', TEXT) ? 'openmetrics' : 'text';
}

const header = ({ name, kind, help, unit }: MetricFamily, format: Format): string => {
  const line = help.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`);
  if (format === 'text') return `# HELP ${name} ${line}\n# TYPE ${name} ${kind === 'info' ? 'gauge' : kind}\n`;
  // A counter and an info have a suffix that OpenMetrics does not count to their name.
  const own = name.replace(/_(?:total|info)$/, '');
  const unitLine = unit === undefined ? '' : `# UNIT ${own} ${unit}\n`;
  return `# TYPE ${own} ${kind}\n${unitLine}# HELP ${own} ${line.replaceAll('"', String.raw`\"`)}\n`;
};

function* allLines(families: Iterable<MetricFamily>, format: Format): Generator<string> {
  for (const family of families) {
    yield header(family, format);
    yield* family.lines;
  }
  if (format === 'openmetrics') yield '# EOF\n';
}

/**
 * The answer in pieces of at most about 64 KiB. The event loop does what is due as soon as it has been held
 * for some time, by whoever takes the pieces as well.
 */
export async function* exposition(families: Iterable<MetricFamily>, format: Format): AsyncGenerator<string> {
  const breathing = new Breathing();
  let piece = '';
  for (const lines of allLines(families, format)) {
    piece += lines;
    const isDue = breathing.isDue;
    if (!isDue && piece.length < CHARACTERS_MAX) continue;
    if (piece !== '') yield piece;
    piece = '';
    if (isDue) await breathing.breath();
  }
  if (piece !== '') yield piece;
}
