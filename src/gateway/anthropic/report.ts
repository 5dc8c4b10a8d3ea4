import type { Runtime } from '../../contract/runtime.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import { httpThrown } from '../../errors/http.ts';
import { textRedactor } from '../../policy/redact/text.ts';
import { GATEWAY_ERROR_MEANINGS, type GatewayErrorKind, type GatewayLogLevel } from '../wire/error.ts';

const clean = textRedactor();

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** What is used of a logger; one of pino fits. */
export type GatewayLogger = Readonly<Record<GatewayLogLevel, Write>>;

/** A source of Prometheus text, as the option `metrics` of `adminHandler` takes it. */
export interface GatewayMetrics {
  /** The `Content-Type` of an answer with `text()`: Prometheus' text format 0.0.4. */
  readonly contentType: string;
  /** All counters and gauges of the gateway, as they are now. */
  text(): string;
}

type CountName =
  | 'requests'
  | 'turns'
  | 'steps'
  | 'toolCalls'
  | 'stateRetrievals'
  | 'stateStores'
  | 'stateStoreFailures'
  | 'stateRetrievalFailures';

/** What is counted, and how it is said. */
const COUNTS: Readonly<Record<CountName, string>> = {
  requests: 'Requests to the gateway.',
  turns: 'Requests of /v1/messages that were let in.',
  steps: 'Requests to the upstream that the gateway made of its own.',
  toolCalls: 'Calls of the gateway’s tools.',
  stateRetrievals: 'Times the conversation state was asked.',
  stateStores: 'Times the conversation state was told.',
  stateStoreFailures: 'Times it could not be stored, retries included.',
  stateRetrievalFailures: 'Times it could not be retrieved, retries included.',
};

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Where all errors of the gateway are logged and counted. No header, argument or result of a request gets here. */
export class GatewayReport {
  readonly #logger: GatewayLogger | undefined;
  readonly #runtime: Runtime;
  readonly #counts = new Map<CountName, number>();
  readonly #errors = new Map<GatewayErrorKind, number>();
  /** Turns that run now. */
  running: () => number = () => 0;

  constructor(logger: GatewayLogger | undefined, runtime: Runtime) {
    this.#logger = logger;
    this.#runtime = runtime;
  }

  count(name: CountName, times = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + times);
  }

  /** Logs and counts an error. `cause`: what was behind it; only its kind, code and status are logged. */
  error(
    kind: GatewayErrorKind,
    requestId: string,
    fields: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ): void {
    this.#errors.set(kind, (this.#errors.get(kind) ?? 0) + 1);
    const { level, status, description } = GATEWAY_ERROR_MEANINGS[kind];
    const why = cause === undefined ? {} : this.#why(cause);
    try {
      this.#logger?.[level](
        {
          event: 'gateway_error',
          kind,
          ...(status === undefined ? {} : { status }),
          request_id: requestId,
          ...fields,
          ...why,
        },
        description,
      );
    } catch {
      // A log that fails is not worth an answer.
    }
  }

  #why(cause: unknown): Readonly<Record<string, unknown>> {
    const error = isToolExecutionError(cause) ? cause : httpThrown(cause, () => this.#runtime.wallNow());
    return {
      cause: error.kind,
      // A code is what anybody put there.
      ...(error.code === undefined ? {} : { code: clean(error.code) }),
      ...(error.status === undefined ? {} : { cause_status: error.status }),
    };
  }

  get metrics(): GatewayMetrics {
    return { contentType: 'text/plain; version=0.0.4; charset=utf-8', text: () => this.#text() };
  }

  #text(): string {
    const lines: string[] = [];
    const metric = (
      name: string,
      type: string,
      help: string,
      series: ReadonlyArray<readonly [labels: string, value: number]>,
    ): void => {
      lines.push(
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...series.map(([labels, value]) => `${name}${labels} ${value}`),
      );
    };
    for (const [name, help] of Object.entries(COUNTS))
      metric(`spillway_gateway_${snake(name)}_total`, 'counter', help, [
        ['', this.#counts.get(name as CountName) ?? 0],
      ]);
    const kinds = Object.keys(GATEWAY_ERROR_MEANINGS) as GatewayErrorKind[];
    metric(
      'spillway_gateway_errors_total',
      'counter',
      'Errors by kind.',
      kinds.map((kind) => [`{kind="${kind}"}`, this.#errors.get(kind) ?? 0]),
    );
    metric('spillway_gateway_turns_running', 'gauge', 'Turns that run now.', [['', this.running()]]);
    return `${lines.join('\n')}\n`;
  }
}
