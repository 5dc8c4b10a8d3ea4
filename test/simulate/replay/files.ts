import { writeFileSync } from 'node:fs';
import type { TraceEvent } from '../../../src/contract/event.ts';
import { liveRuntime } from '../../../src/runtime.ts';
import { ndjsonHeader, ndjsonLine } from '../../../src/sinks/ndjson.ts';

/** The lines of a file whose sink was closed. */
export const traceLines = (events: readonly TraceEvent[]): string[] => [
  ndjsonHeader(liveRuntime),
  ...events.map(ndjsonLine),
  ndjsonLine({ source: 'sink', type: 'file_ended', lastSeq: events.at(-1)?.seq }),
];

/** Writes a trace as a sink does that is closed. */
export const writeTrace = (path: string, events: readonly TraceEvent[]): void =>
  writeFileSync(path, traceLines(events).join(''));
