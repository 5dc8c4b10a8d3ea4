import * as api from '@opentelemetry/api';
import { LoggerProvider } from '@opentelemetry/sdk-logs';
import {
  InMemoryMetricExporter,
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openTelemetrySink, type Inspect, type OtelMeter, type OtelObserver } from 'spillway/sinks/opentelemetry';
import { fromTraceparent, toTraceparent } from '../../src/sinks/opentelemetry/api.ts';
import { contextManager, logRecorder, recorder, type Sdk, type SeenMetric } from './otel-kit.ts';
import { otelNamesSuite } from './otel-names-suite.ts';
import { otelSuite } from './otel-suite.ts';

const sdk: Sdk = {
  api,
  tracing: () => {
    const { processor, finished, started } = recorder();
    const provider = new TracerProvider({ spanProcessors: [processor] });
    return { getTracer: (...scope) => provider.getTracer(...scope), finished, started };
  },
  metering: () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: 3_600_000,
      exportTimeoutMillis: 1_000,
    });
    const provider = new MeterProvider({ readers: [reader] });
    const collect = async (): Promise<SeenMetric[]> => {
      await reader.forceFlush();
      await reader.shutdown();
      return exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics as unknown as SeenMetric[]));
    };
    return { getMeter: (...scope) => provider.getMeter(...scope), collect };
  },
  logging: () => {
    const { processor, emitted } = logRecorder();
    const provider = new LoggerProvider({ processors: [processor] });
    return { getLogger: (...scope) => provider.getLogger(...scope), emitted };
  },
};

describe('R-7.6 OpenTelemetry, SDK 3', () => {
  beforeAll(() => {
    api.context.setGlobalContextManager(contextManager(api.ROOT_CONTEXT) as api.ContextManager);
  });
  afterAll(() => api.context.disable());
  otelSuite(() => sdk);
  otelNamesSuite(() => sdk);
});

/** The retries left, as each collection is told of them. */
const retriesLeft = (inspect: Inspect): (() => Promise<number[]>) => {
  const told: Array<(observer: OtelObserver) => void | Promise<void>> = [];
  const meter = api.metrics.getMeter('none') as unknown as OtelMeter;
  const heard: OtelMeter = {
    createCounter: (...own) => meter.createCounter(...own),
    createHistogram: (...own) => meter.createHistogram(...own),
    createObservableCounter: (...own) => meter.createObservableCounter(...own),
    createObservableGauge: (name, options) => ({
      addCallback: (callback) =>
        void (name === 'spillway.retry_budget_left'
          ? told.push(callback)
          : meter.createObservableGauge(name, options).addCallback(callback)),
    }),
  };
  openTelemetrySink({ api: { ...api, metrics: { getMeter: () => heard } }, tools: ['a'], inspect });
  return async () => {
    const values: number[] = [];
    for (const callback of told) await callback({ observe: (value) => void values.push(value) });
    return values;
  };
};

describe('R-7.6 OpenTelemetry', () => {
  it('R-7.5 a layer that could not be asked once is asked again at the next collection', async () => {
    let asked = 0;
    const collect = retriesLeft(() => {
      if (asked++ === 0) throw new ReferenceError('the layer is not there yet');
      return { retriesLeft: 7 };
    });
    expect([await collect(), await collect(), await collect()]).toEqual([[], [7], [7]]);
    expect(asked).toBe(3);
  });

  it('R-7.5 a layer that does not answer holds up one collection for a second, and is asked again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let asked = 0;
    const collect = retriesLeft(() => (asked++ === 0 ? new Promise(() => undefined) : { retriesLeft: 7 }));
    let first: number[] | undefined;
    void collect().then((values) => (first = values));
    await vi.advanceTimersByTimeAsync(999);
    expect(first).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(first).toEqual([]);
    expect(await collect()).toEqual([7]);
  });

  it('R-7.6 takes the API as it is, and works without an SDK', () => {
    const sink = openTelemetrySink({ api, tools: ['a'] });
    sink.next({ source: 'call', type: 'call_started', seq: 1, atMs: 0, callId: 'c', toolName: 'a' });
    expect(sink.run('c', () => 1)).toBe(1);
  });

  it.each([
    ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', true],
    ['cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more', true],
    ['ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', false],
    ['00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01', false],
    ['00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01', false],
    ['[redacted]', false],
    ['', false],
  ])('R-7.6 reads the traceparent %s', (header, good) => {
    const read = fromTraceparent(header);
    expect(read !== undefined).toBe(good);
    if (read !== undefined) expect(toTraceparent(read).slice(2)).toBe(header.slice(2, 55));
  });

  it('R-2.9 refuses options out of range', () => {
    expect(() => openTelemetrySink({} as never)).toThrow(
      'api must be the whole module @opentelemetry/api, 1.9.0 or later',
    );
    expect(() => openTelemetrySink({ api, attemptSpans: 'some' } as never)).toThrow(
      'attemptSpans must be one of always, onRetry, never, not "some"',
    );
    expect(() => openTelemetrySink({ api, prefix: '' })).toThrow('prefix must be 1 to 64 letters');
    expect(() => openTelemetrySink({ api, spans: true } as never)).toThrow('openTelemetrySink has no option "spans"');
  });
});
