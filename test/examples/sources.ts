// `node --import` of this file lets programs import `spillway` from the sources, as they do where it is installed.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { default: string }>;
};

/** `spillway/testing` is `./testing` in the manifest: the source of its built file. */
const sourceOf = (specifier: string): string | undefined => {
  const to = exports[specifier.replace(/^spillway/, '.')];
  return typeof to === 'object' ? join(root, to.default.replace('./dist/', 'src/').replace(/js$/, 'ts')) : undefined;
};

registerHooks({
  resolve: (specifier, context, next) => {
    const source = /^spillway(?:\/|$)/.test(specifier) ? sourceOf(specifier) : undefined;
    return next(source === undefined ? specifier : pathToFileURL(source).href, context);
  },
});
