// `npm run example NAME`: runs an example of this folder on the sources, as `node NAME.ts` does in a project of yours.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

await import('./sources.ts');

/** Where LangChain is installed; it does not fit into the main install. */
let langChain: string | undefined;
const here = pathToFileURL(import.meta.dirname).href;
registerHooks({
  resolve: (specifier, context, next) => {
    const beside = /^(?:langchain|@langchain\/)/.test(specifier) && context.parentURL?.startsWith(here) === true;
    if (!beside || langChain === undefined) return next(specifier, context);
    return next(specifier, { ...context, parentURL: pathToFileURL(join(langChain, 'index.js')).href });
  },
});

const [name = ''] = process.argv.slice(2);
const path = join(import.meta.dirname, `${name}.ts`);
const table = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const names = [...table.matchAll(/^\| `([\w-]+)`/gm)].map(([, each]) => each);
if (!names.includes(name)) {
  process.stderr.write(`usage: npm run example NAME, where NAME is one of: ${names.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const tidy = await prepare();
  try {
    await import(pathToFileURL(path).href);
  } finally {
    await tidy?.();
  }
}

/** What an example finds in place when it is run elsewhere: an installed LangChain, a Redis. */
async function prepare(): Promise<(() => Promise<void>) | undefined> {
  if (name === 'langchain') {
    const [{ PACKAGES }, { sideInstalled }] = await Promise.all([
      import('../adapters/frameworks/packages.ts'),
      import('../side-install.ts'),
    ]);
    langChain = await sideInstalled(...PACKAGES.langchain);
  }
  if (name === 'redis' && process.env['REDIS_URL'] === undefined) {
    const { startRedis } = await import('../stores/redis/server.ts');
    const server = await startRedis({ tcp: true });
    process.env['REDIS_URL'] = `redis://127.0.0.1:${server.port}`;
    return () => server.stop();
  }
  return undefined;
}
