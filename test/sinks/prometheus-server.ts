import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { vi } from 'vitest';
import type { PrometheusSink } from 'spillway/sinks/prometheus';
import { stringify } from 'yaml';
import { freePort } from '../free-port.ts';

/** One sample of an answer to a query. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface RuleHealth {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

export interface Prometheus {
  /**
   * @param atMs now, unless it is given
   * @throws Error with Prometheus' own words for an expression that it cannot evaluate
   */
  query(expr: string, atMs?: number): Promise<readonly Sample[]>;
  rules(): Promise<readonly RuleHealth[]>;
  /** The labels of the exemplars that it has kept. */
  exemplars(expr: string): Promise<ReadonlyArray<Readonly<Record<string, string>>>>;
  stop(): Promise<void>;
}

/**
 * A real Prometheus that scrapes these ports of this machine once a second; each is the `instance` of its series. One
 * that does not answer within that second has no series until its next scrape.
 */
export async function startPrometheus(
  ports: readonly number[],
  ruleFiles: readonly string[] = [],
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-prometheus-'));
  const port = await freePort();
  const targets = ports.map((scraped) => `127.0.0.1:${scraped}`);
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ruleFiles,
    scrape_configs: [{ job_name: 'tools', static_configs: [{ targets }] }],
  };
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, stringify(config));
  const listen = `--web.listen-address=127.0.0.1:${port}`;
  const flags = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    listen,
    '--enable-feature=exemplar-storage',
  ];
  const child = spawn('prometheus', flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => void (said = `${said}${text.toString()}`.slice(-4_000)));
  const ended = once(child, 'exit');
  const base = `http://127.0.0.1:${port}`;
  const get = async (path: string): Promise<unknown> => {
    const { status, data, error } = (await (await fetch(`${base}/api/v1/${path}`)).json()) as {
      status: string;
      data: unknown;
      error?: string;
    };
    if (status !== 'success') throw new Error(error);
    return data;
  };
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const ready = async (): Promise<void> => {
    const { ok } = await fetch(`${base}/-/ready`);
    if (!ok) throw new Error(`prometheus is not ready: ${said}`);
  };
  try {
    await vi.waitFor(ready, { timeout: 60_000, interval: 100 });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    query: async (expr, atMs = Date.now()) => {
      const { result } = (await get(`query?query=${encodeURIComponent(expr)}&time=${atMs / 1_000}`)) as {
        result: Array<{ metric: Record<string, string>; value: [number, string] }>;
      };
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
    },
    rules: async () => {
      const { groups } = (await get('rules')) as { groups: Array<{ rules: RuleHealth[] }> };
      return groups.flatMap(({ rules }) => rules);
    },
    exemplars: async (expr) => {
      const span = `start=${Date.now() / 1000 - 600}&end=${Date.now() / 1000 + 60}`;
      const found = (await get(`query_exemplars?query=${encodeURIComponent(expr)}&${span}`)) as Array<{
        exemplars: Array<{ labels: Record<string, string> }>;
      }>;
      return found.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels));
    },
    stop,
  };
}

export interface MetricsServer {
  /** The content types that were answered with. */
  readonly answered: ReadonlySet<string>;
  stop(): Promise<void>;
}

/** A sink's metrics over HTTP as the README shows it. `textOnly`: whatever format is asked for. */
export async function serveMetrics(
  sink: PrometheusSink,
  port: number,
  textOnly = false,
  more: () => Promise<string> = async () => '',
): Promise<MetricsServer> {
  const answered = new Set<string>();
  const server: Server = createServer(({ headers }, response) => {
    const { contentType, chunks } = sink.scrape(textOnly ? undefined : headers.accept);
    answered.add(contentType);
    response.setHeader('content-type', contentType);
    const told = async function* (): AsyncGenerator<string> {
      yield* chunks;
      yield await more();
    };
    pipeline(told, response).catch(() => response.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    answered,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
