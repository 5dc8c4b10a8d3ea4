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

const started = async (options: object): Promise<RunningWorker> => {
  const load = await sideInstall('miniflare', ['miniflare@4.20260730.0']);
  const { Miniflare } = (await load('miniflare')) as MiniflarePackage;
  const running = new Miniflare({ modules: true, compatibilityDate: '2026-06-01', cf: false, port: 0, ...options });
  return { url: (await running.ready).href.replace(/\/$/, ''), dispose: () => running.dispose() };
};

/**
 * Bundles `worker.ts` into a folder.
 * @returns starts it in real workerd, before an upstream, with its storage in that folder
 */
export async function workerIn(folder: string): Promise<(upstream: string) => Promise<RunningWorker>> {
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
  return (upstream) =>
    started({
      modulesRoot: folder,
      scriptPath: join(folder, 'worker.js'),
      durableObjects: { STATE: { className: 'ConversationStateDO', useSQLite: true } },
      durableObjectsPersist: join(folder, 'storage'),
      bindings: { UPSTREAM: upstream },
    });
}

/** The least that a worker can be; it says of its connection what a worker can say. */
const BARE = `export default {
  fetch: () => new Response('ok', { headers: { connection: 'close', 'keep-alive': 'timeout=1', 'x-said': 'yes' } }),
};`;

/** Starts a worker without anything of ours in real workerd. */
export const bareWorker = (): Promise<RunningWorker> => started({ script: BARE });
