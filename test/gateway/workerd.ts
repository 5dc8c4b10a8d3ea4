import { join } from 'node:path';
import { build } from 'esbuild';
import { sideInstall } from '../side-install.ts';

/** What is used of a running worker. */
export interface RunningWorker {
  readonly url: string;
  dispose(): Promise<void>;
}

interface Miniflare {
  readonly ready: Promise<URL>;
  dispose(): Promise<void>;
}
interface MiniflarePackage {
  readonly Miniflare: new (options: object) => Miniflare;
}

/**
 * Bundles `worker.ts` into a folder.
 * @returns starts it in real workerd, before an upstream, with its storage in that folder
 */
export async function workerIn(folder: string): Promise<(upstream: string) => Promise<RunningWorker>> {
  const load = await sideInstall('miniflare', ['miniflare@4.20260730.0']);
  const { Miniflare } = (await load('miniflare')) as MiniflarePackage;
  const source = (path: string): string => join(import.meta.dirname, '../../src', path);
  const alias = Object.fromEntries(
    ['anthropic', 'conversation-do', 'conversation-remote'].map((name) => [
      `spillway/gateway/${name}`,
      source(`gateway/${name}.ts`),
    ]),
  );
  const entry = "export { ConversationStateDO, worker as default } from './worker.ts';";
  await build({
    stdin: { contents: entry, resolveDir: import.meta.dirname },
    outfile: join(folder, 'worker.js'),
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    alias: { ...alias, spillway: source('index.ts') },
  });
  return async (upstream) => {
    const running = new Miniflare({
      modules: true,
      modulesRoot: folder,
      scriptPath: join(folder, 'worker.js'),
      compatibilityDate: '2026-06-01',
      cf: false,
      port: 0,
      durableObjects: { STATE: { className: 'ConversationStateDO', useSQLite: true } },
      durableObjectsPersist: join(folder, 'storage'),
      bindings: { UPSTREAM: upstream },
    });
    return { url: (await running.ready).href.replace(/\/$/, ''), dispose: () => running.dispose() };
  };
}
