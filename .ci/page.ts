// The inspector's page as one script and one style: bundled for the package, and as it is asked for from the sources.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, transform, type Plugin } from 'esbuild';

const folder = resolve(import.meta.dirname, '../src/inspect/page');

/** Members of the model that no event, no answer of the server and no browser has. */
const MANGLED = new RegExp(
  `^(?:${[
    'attemptCount',
    'askedTool',
    'usedAlternative',
    'moreNodes',
    'changeCount',
    'firstState',
    'eventCount',
    'turnCount',
    'forgotten',
    'lastMs',
    'firstMs',
    'settledMs',
    'startMs',
    'endMs',
    'placeOf',
    'heardMs',
  ].join('|')})$`,
);

/** What the page gets has passed the redactor, which takes out what nobody sees: it need not look again. */
const READ_ALREADY: Plugin = {
  name: 'read-already',
  setup: (bundle) => {
    bundle.onLoad({ filter: /redact[/\\]invisible\.ts$/ }, () => ({
      contents: 'export const visible = (text) => text;',
    }));
  },
};

/** What `src/inspect/page-asset.ts` gives. */
export async function bundlePage(): Promise<{ readonly script: string; readonly style: string }> {
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'main.tsx')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2024',
    // Smaller than the automatic runtime: what is gzipped is counted.
    jsx: 'transform',
    jsxFactory: 'h',
    jsxFragment: 'Fragment',
    inject: [join(folder, 'jsx.ts')],
    tsconfigRaw: '{}',
    mangleProps: MANGLED,
    plugins: [READ_ALREADY],
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    logLevel: 'warning',
  });
  const { code } = await transform(readFileSync(join(folder, 'style.css'), 'utf8'), { loader: 'css', minify: true });
  return { script: outputFiles[0]?.text ?? '', style: code };
}
