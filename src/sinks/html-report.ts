import { writeFile } from 'node:fs/promises';
import type { TraceEvent } from '../contract/event.ts';
import { reportHtml } from '../inspect/html.ts';
import { pageAsset } from '../inspect/page-asset.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { redactorOf } from '../policy/redact/values.ts';
import type { TraceSink } from './sink.ts';

/** How much a report holds. */
export interface HtmlReportOptions {
  /** Events that are kept, the last ones, 1 to 1,000,000. Default 50,000. */
  readonly maxEvents?: number;
  /** Another trace, whose turns are put beside those of the report. */
  readonly compareWith?: readonly TraceEvent[];
}

/** A sink that makes a report of what it heard. */
export interface HtmlReportSink extends TraceSink {
  /** How many events were too many to keep. */
  readonly dropped: number;
  /** The report so far: one file of HTML. */
  html(): Promise<string>;
  /** Writes the report so far to a file, for its owner only; what was in it is gone. */
  write(path: string): Promise<void>;
}

const MAX_EVENTS = 50_000;

/**
 * A report of a trace, as events: one file of HTML with its data, which opens from disk and needs no network.
 *
 * @param events of `trace$`, or of a file
 * @param compareWith another trace, whose turns are put beside those of the report
 *
 * @example
 * const { events } = await readNdjson('trace.ndjson');
 * const html = await htmlReport(events);
 */
export async function htmlReport(
  events: readonly TraceEvent[],
  compareWith: readonly TraceEvent[] = [],
): Promise<string> {
  const { show } = redactorOf();
  const shown = (trace: readonly TraceEvent[]): TraceEvent[] => trace.map((event) => show(event));
  return reportHtml(shown(events), await pageAsset(), shown(compareWith));
}

/**
 * Collects the events of a trace for a report in one file: the inspector's page with its data, which opens from disk
 * and needs no network. What looks like a secret is taken out once more, beside what `trace$` has taken out.
 *
 * @param options how much is kept
 * @throws RangeError for an option out of its range
 *
 * @example
 * const report = htmlReportSink();
 * spillway.trace$.subscribe(report);
 * await spillway.execute({ toolName: 'flight_search', input: { from: 'HEL', to: 'NRT' } });
 * await report.write('turn.html');
 */
export function htmlReportSink(options: HtmlReportOptions = {}): HtmlReportSink {
  checkKeys('htmlReportSink', options, ['maxEvents', 'compareWith']);
  const { maxEvents = MAX_EVENTS, compareWith } = options;
  checkNumber('maxEvents', maxEvents, integer(1, 1_000_000));
  let events: TraceEvent[] = [];
  let dropped = 0;
  const trim = (): void => {
    dropped += Math.max(0, events.length - maxEvents);
    events = events.slice(-maxEvents);
  };
  const html = (): Promise<string> => {
    trim();
    return htmlReport(events, compareWith);
  };
  return {
    next: (event) => {
      events.push(event);
      if (events.length > maxEvents * 2) trim();
    },
    get dropped() {
      return dropped + Math.max(0, events.length - maxEvents);
    },
    html,
    write: async (path) => writeFile(path, await html(), { mode: 0o600 }),
  };
}
