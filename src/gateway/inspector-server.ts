import type { Observable } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { addEvent } from '../inspect/model/add.ts';
import { emptyTrace } from '../inspect/model/empty.ts';
import type { TraceModel } from '../inspect/model.ts';
import { checkKeys } from '../policy/check.ts';
import { redactorOf } from '../policy/redact/values.ts';
import { liveRuntime } from '../runtime.ts';
import { serveLocally } from './admin/local-server.ts';
import { EventLog, type LineSource } from './inspector/event-log.ts';
import { TraceFile } from './inspector/trace-file.ts';
import { inspectorHandler, type InspectorGuardOptions, type InspectorHandler, type Told } from './inspector.ts';

/** Where an inspector listens, and who may look. */
export interface InspectorOptions extends InspectorGuardOptions {
  /**
   * The address to listen at. Default `127.0.0.1`. An address that others can reach needs a `token` of your own, and
   * TLS in front of it.
   */
  readonly host?: string;
  /** The port to listen at, 0 to 65,535. Default 0: any free one, which `url` shows. */
  readonly port?: number;
  /** How long answers that are on their way when `close()` is called may take, in milliseconds. Default 500. */
  readonly closeGraceMs?: number;
  /** The clock of the layer's events. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** The same of a trace file. */
export interface TraceFileOptions extends InspectorOptions {
  /** Another trace file, whose turns the page puts beside those of the first. */
  readonly compareWith?: string;
}

/** The same of a trace that is at hand. */
export interface TraceEventsOptions extends InspectorOptions {
  /** Another trace, whose turns the page puts beside those of the first. */
  readonly compareWith?: readonly TraceEvent[];
}

/** An inspector that is being served. */
export interface InspectorServer {
  /** The base address: scheme, address and port. */
  readonly url: string;
  /** The token that requests must bear, by `Authorization: Bearer` or as `?token=`. */
  readonly token: string;
  /** What a person opens: the address with the token. Show it only to those who may look. */
  readonly page: string;
  /** Stops listening, and ends all connections. Idempotent. */
  close(): Promise<void>;
}

/** What an inspector needs of a layer; the one that `createSpillway` makes has it. */
export interface InspectedLayer {
  /** Everything that happens in the layer. */
  readonly trace$: Observable<TraceEvent>;
}

const OPTION_KEYS = ['token', 'allowedHosts', 'allowedOrigins', 'onRefused', 'host', 'port', 'closeGraceMs', 'runtime'];

const serve = async (
  source: LineSource,
  told: Told,
  options: InspectorOptions,
  end: () => Promise<void> | void,
): Promise<InspectorServer> => {
  const { host: _host, port: _port, closeGraceMs: _graceMs, runtime, ...rest } = options;
  const made: InspectorHandler[] = [];
  const server = await serveLocally('the inspector', options, (own) => {
    const allowedHosts = [...(rest.allowedHosts ?? []), ...own];
    const handler = inspectorHandler(source, { ...rest, allowedHosts }, told, runtime);
    made.push(handler);
    return handler;
  });
  const token = made[0]?.token ?? '';
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    for (const handler of made) handler.end();
    await server.close();
    await end();
  };
  return {
    url: server.url,
    token,
    page: `${server.url}/?token=${encodeURIComponent(token)}`,
    close: () => (closing ??= close()),
  };
};

/**
 * Serves the inspector of a layer on Node: a page that shows its turns, calls, breakers and pending timers as they
 * happen, at a loopback address, with a token that is made unless you give one. It reads and orders nothing, and shows
 * what `trace$` shows: no inputs, no outputs, no secrets.
 *
 * It keeps the last 200,000 events, or 64 MiB of them, for pages that are opened or reloaded later.
 *
 * @param layer the layer, from `createSpillway`
 * @param options where to listen, and who may look
 * @throws RangeError for an option out of its range, and for an address that others can reach without a token of your
 * own: it does not start
 * @throws Error when it cannot listen, with the reason and the remedy
 *
 * @example
 * const inspector = await serveInspector(spillway);
 * console.error(`inspect: ${inspector.page}`);
 * await inspector.close();
 */
export async function serveInspector(layer: InspectedLayer, options: InspectorOptions = {}): Promise<InspectorServer> {
  checkKeys('serveInspector', options, OPTION_KEYS);
  const { runtime = liveRuntime } = options;
  const log = new EventLog(() => runtime.now());
  const model = emptyTrace();
  // Once more, beside the layer's own: a stream of a host's making may hold anything.
  const redact = redactorOf().show;
  const watching = layer.trace$.subscribe({
    next: (event) => {
      const shown = redact(event);
      addEvent(model, shown);
      log.add(shown);
    },
    complete: () => log.end(),
    error: () => log.end(),
  });
  const stop = (): void => {
    watching.unsubscribe();
    log.end();
  };
  try {
    return await serve(log, { model: () => Promise.resolve(model) }, options, stop);
  } catch (error) {
    stop();
    throw error;
  }
}

/** Reads a file as far as it goes now, into a model that goes on from there the next time. */
const modelOf = (file: TraceFile): (() => Promise<TraceModel>) => {
  const model = emptyTrace();
  let at = 0;
  let reading: Promise<void> = Promise.resolve();
  const readOn = async (): Promise<void> => {
    for (;;) {
      const { nextId, lines } = await file.read(at);
      for (const line of lines) addEvent(model, JSON.parse(line) as TraceEvent);
      if (nextId === at) return;
      at = nextId;
    }
  };
  return async () => {
    reading = reading.then(readOn, readOn);
    await reading;
    return model;
  };
};

/**
 * Serves the inspector of a trace file on Node, of `ndjsonSink` or `spillway run --trace`; what is added to the file is
 * shown as it comes.
 *
 * @param path the file
 * @param options where to listen, and who may look
 * @throws the error of the file system when the file cannot be opened; else as `serveInspector`
 *
 * @example
 * const inspector = await serveTraceFile('trace.ndjson');
 * console.error(`inspect: ${inspector.page}`);
 */
export async function serveTraceFile(path: string, options: TraceFileOptions = {}): Promise<InspectorServer> {
  checkKeys('serveTraceFile', options, [...OPTION_KEYS, 'compareWith']);
  const { compareWith, runtime = liveRuntime, ...rest } = options;
  const file = await TraceFile.open(path, runtime);
  let other: TraceFile | undefined;
  const close = async (): Promise<void> => {
    await file.close();
    await other?.close();
  };
  try {
    other = compareWith === undefined ? undefined : await TraceFile.open(compareWith, runtime);
    const told = { model: modelOf(file), ...(other === undefined ? {} : { other: modelOf(other) }) };
    return await serve(file, told, { ...rest, runtime }, close);
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Serves the inspector of a trace that is over and at hand, on Node: what looks like a secret is taken out once more.
 *
 * @param events of `trace$`, or of a file
 * @param options where to listen, and who may look
 * @throws as `serveInspector`
 *
 * @example
 * const [before, after] = [await readNdjson('before.ndjson'), await readNdjson('after.ndjson')];
 * const inspector = await serveTrace(before.events, { compareWith: after.events });
 * console.error(`inspect: ${inspector.page}`);
 */
export async function serveTrace(
  events: readonly TraceEvent[],
  options: TraceEventsOptions = {},
): Promise<InspectorServer> {
  checkKeys('serveTrace', options, [...OPTION_KEYS, 'compareWith']);
  const { compareWith, ...rest } = options;
  const redact = redactorOf().show;
  const shown = events.map(redact);
  const model = shown.reduce(addEvent, emptyTrace());
  const log = new EventLog(() => model.lastMs);
  for (const event of shown) log.add(event);
  log.end();
  const other = compareWith?.map(redact).reduce(addEvent, emptyTrace());
  const told = { model: () => Promise.resolve(model) };
  return serve(
    log,
    other === undefined ? told : { ...told, other: () => Promise.resolve(other) },
    rest,
    () => undefined,
  );
}
