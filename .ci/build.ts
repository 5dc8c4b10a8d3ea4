// `npm run build [-- DIRECTORY]`: the package's `dist`, or the same in another directory.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import { z } from 'zod';
import { toolCallEnvelopeSchema, toolResultEnvelopeSchema } from '../src/contract/envelope.ts';
import { mcpFileSchema } from '../src/contract/formats/mcp-file.ts';
import { planFileSchema } from '../src/contract/formats/plan-file.ts';
import { policyFileSchema } from '../src/contract/formats/policy-file.ts';
import { restManifestSchema } from '../src/contract/formats/rest-manifest.ts';
import { bundlePage } from './page.ts';
import { scenarioFileSchema } from '../src/contract/formats/scenario-file.ts';

const root = resolve(import.meta.dirname, '..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));

const schemas: ReadonlyArray<readonly [name: string, title: string, schema: z.core.$ZodType]> = [
  ['tool-call', 'A tool call, version 1.1', toolCallEnvelopeSchema],
  ['tool-result', 'The result of a tool call', toolResultEnvelopeSchema],
  ['plan', 'A plan for `spillway run`', planFileSchema],
  ['policy', 'A policy for `spillway replay` and `spillway simulate`', policyFileSchema],
  ['scenario', 'A scenario for `spillway simulate`', scenarioFileSchema],
  ['mcp', 'Servers and policies for `spillway mcp`', mcpFileSchema],
  ['rest-manifest', 'The tools of one HTTP API', restManifestSchema],
];

rmSync(dist, { recursive: true, force: true });
execFileSync(
  process.execPath,
  [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, '.ci/tsconfig.build.json'), '--outDir', dist],
  { stdio: 'inherit' },
);

mkdirSync(join(dist, 'schemas'));
for (const [name, title, schema] of schemas) {
  // `input`: the schema describes what is written, before defaults are filled in.
  const json = { $id: `urn:spillway:schema:${name}`, title, ...z.toJSONSchema(schema, { io: 'input' }) };
  writeFileSync(join(dist, 'schemas', `${name}.schema.json`), `${JSON.stringify(json, undefined, 2)}\n`);
}

for (const asset of ['cli/demo/plan.yaml', 'sinks/prometheus-rules.yml', 'sinks/grafana-dashboard.json', 'llms.txt']) {
  mkdirSync(dirname(join(dist, asset)), { recursive: true });
  copyFileSync(join(root, 'src', asset), join(dist, asset));
}

// The sources bundle the page when it is asked for; the package holds it.
const page = JSON.stringify(await bundlePage());
writeFileSync(
  join(dist, 'inspect/page-asset.js'),
  `const asset = ${page};\nexport function pageAsset() {\n  return Promise.resolve(asset);\n}\n`,
);

/**
 * Node reads and compiles a file for each module: 140 for the root entry. What it is given is the same modules in few
 * files, all entries together, so that a class is one class. Bundlers have the modules, which they shake better.
 */
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly module: string }>>;
};
await build({
  entryPoints: Object.values(exports).flatMap((to) =>
    typeof to === 'string' ? [] : [join(dist, to.module.replace('./dist/', ''))],
  ),
  outdir: join(dist, 'node'),
  outbase: dist,
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'es2024',
  chunkNames: 'shared/[name]-[hash]',
  logLevel: 'warning',
});

const command = join(dist, 'cli/main.js');
if (!readFileSync(command, 'utf8').startsWith('#!/usr/bin/env node\n'))
  throw new Error('src/cli/main.ts must begin with #!/usr/bin/env node: it is the package’s bin');
chmodSync(command, 0o755);
