import { afterAll, beforeAll, describe } from 'vitest';
import type { OtelApi, OtelContext } from 'spillway/sinks/opentelemetry';
import { SIDE_INSTALL_TIMEOUT_MS, sideInstall } from '../side-install.ts';
import { contextManager, logRecorder, recorder, type Sdk, type SeenMetric } from './otel-kit.ts';
import { otelNamesSuite } from './otel-names-suite.ts';
import { otelSuite } from './otel-suite.ts';

/** What of SDK 2 is used; its own types want the API that does not fit beside the other line's. */
interface TraceBase {
  readonly BasicTracerProvider: new (options: object) => Pick<OtelApi['trace'], 'getTracer'>;
}
interface Logs {
  readonly LoggerProvider: new (options: object) => NonNullable<OtelApi['logs']>;
}
interface Metrics {
  readonly MeterProvider: new (options: object) => OtelApi['metrics'];
  readonly PeriodicExportingMetricReader: new (options: object) => {
    forceFlush(): Promise<void>;
    shutdown(): Promise<void>;
  };
  readonly InMemoryMetricExporter: new (temporality: number) => {
    getMetrics(): ReadonlyArray<{ readonly scopeMetrics: ReadonlyArray<{ readonly metrics: readonly SeenMetric[] }> }>;
  };
}
type Api = Sdk['api'] & { readonly ROOT_CONTEXT: OtelContext };

/** `AggregationTemporality.CUMULATIVE`. */
const CUMULATIVE = 1;

describe('R-7.6 OpenTelemetry, SDK 2', () => {
  let sdk: Sdk;
  beforeAll(async () => {
    const load = await sideInstall('otel2', [
      '@opentelemetry/api@1.9.0',
      '@opentelemetry/sdk-trace-base@2.12.1',
      '@opentelemetry/sdk-metrics@2.12.1',
      '@opentelemetry/sdk-logs@0.223.1',
    ]);
    const api = (await load('@opentelemetry/api')) as Api;
    const { BasicTracerProvider } = (await load('@opentelemetry/sdk-trace-base')) as TraceBase;
    const { MeterProvider, PeriodicExportingMetricReader, InMemoryMetricExporter } = (await load(
      '@opentelemetry/sdk-metrics',
    )) as Metrics;
    const { LoggerProvider } = (await load('@opentelemetry/sdk-logs')) as Logs;
    api.context.setGlobalContextManager(contextManager(api.ROOT_CONTEXT) as never);
    sdk = {
      api,
      tracing: () => {
        const { processor, finished, started } = recorder();
        const provider = new BasicTracerProvider({ spanProcessors: [processor] });
        return { getTracer: (...scope) => provider.getTracer(...scope), finished, started };
      },
      metering: () => {
        const exporter = new InMemoryMetricExporter(CUMULATIVE);
        const reader = new PeriodicExportingMetricReader({
          exporter,
          exportIntervalMillis: 3_600_000,
          exportTimeoutMillis: 1_000,
        });
        const provider = new MeterProvider({ readers: [reader] });
        const collect = async (): Promise<SeenMetric[]> => {
          await reader.forceFlush();
          await reader.shutdown();
          return exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
        };
        return { getMeter: (...scope) => provider.getMeter(...scope), collect };
      },
      logging: () => {
        const { processor, emitted } = logRecorder();
        const provider = new LoggerProvider({ processors: [processor] });
        return { getLogger: (...scope) => provider.getLogger(...scope), emitted };
      },
    };
  }, SIDE_INSTALL_TIMEOUT_MS);
  afterAll(() => sdk?.api.context.disable());
  otelSuite(() => sdk);
  otelNamesSuite(() => sdk);
});
