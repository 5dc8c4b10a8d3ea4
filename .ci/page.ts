// The inspector's page as one script and one style: bundled for the package, and as it is asked for from the sources.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, transform, type Plugin } from 'esbuild';
import { minify } from 'terser';

const folder = resolve(import.meta.dirname, '../src/inspect/page');

/** Members of the model that no event, no answer of the server and no browser has. */
const MANGLED = new RegExp(
  `^(?:${[
    'alternative',
    'askedTool',
    'attemptCount',
    'begun',
    'breakers',
    'budgets',
    'calls',
    'changeCount',
    'changes',
    'deadlineMs',
    'decision',
    'dueMs',
    'endMs',
    'escalated',
    'eventCount',
    'facts',
    'firstMs',
    'firstState',
    'folds',
    'forgotten',
    'fromMs',
    'heardMs',
    'held',
    'heldBy',
    'heldMs',
    'isUndoing',
    'known',
    'label',
    'room',
    'row',
    'scale',
    'timer',
    'box',
    'isGated',
    'isUndone',
    'isVerified',
    'items',
    'keyOf',
    'lastMs',
    'limits',
    'loose',
    'marks',
    'moreNodes',
    'moves',
    'number',
    'note',
    'notes',
    'placeOf',
    'replayed',
    'settledMs',
    'startMs',
    'ticks',
    'toMs',
    'told',
    'turnCount',
    'turns',
    'undoing',
    'usedAlternative',
    'waitsSinceMs',
    // What classes of components have, which Preact asks for, and the page has none of.
    'componentDidCatch',
    'componentDidMount',
    'componentDidUpdate',
    'componentWillMount',
    'componentWillReceiveProps',
    'componentWillUnmount',
    'componentWillUpdate',
    'contextType',
    'debounceRendering',
    'defaultProps',
    'diffed',
    'forceUpdate',
    'getChildContext',
    'getDerivedStateFromError',
    'getDerivedStateFromProps',
    'getSnapshotBeforeUpdate',
    'setState',
    'shouldComponentUpdate',
    'unmount',
    'current',
    'render',
    '__html',
    'isHolding',
    'defaulted',
    'share',
    'top',
    'props',
    'context',
    'vnode',
  ].join('|')})$`,
);

/** What the page gets has passed the redactor, which takes out what nobody sees; a browser breaks no line at one. */
const READ_ALREADY: Plugin = {
  name: 'read-already',
  setup: (bundle) => {
    bundle.onLoad({ filter: /inspect[/\\]plain\.ts$/ }, () => ({ contents: 'export const plain = (text) => text;' }));
  },
};

/** The server draws marbles and writes texts: the page's model needs nothing that is for those alone. */
const ONLY_SEEN: Plugin = {
  name: 'only-seen',
  setup: (bundle) => {
    bundle.onLoad({ filter: /model[/\\](?:marks|unseen)\.ts$/ }, () => ({
      contents: ['markCall', 'markCompensation', 'markSettled', 'addUnseen']
        .map((name) => `export function ${name}() {}`)
        .join('\n'),
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
    plugins: [READ_ALREADY, ONLY_SEEN],
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    logLevel: 'warning',
  });
  // What esbuild leaves: it looks at each file once, and a page is read over a network.
  const { code: script = '' } = await minify(outputFiles[0]?.text ?? '', { ecma: 2020, compress: { passes: 3 } });
  const { code: style } = await transform(readFileSync(join(folder, 'style.css'), 'utf8'), {
    loader: 'css',
    minify: true,
  });
  return { script, style };
}
