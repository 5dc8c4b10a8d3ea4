import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A project of a user of the package: what the offline test and CI's installation on several Nodes have in common. */
export const root: string = join(import.meta.dirname, '../..');

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<
    Record<string, string | { readonly types: string; readonly node: string; readonly default: string }>
  >;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** The entries that are modules: `spillway`, `spillway/testing` ... */
export const entries: readonly string[] = Object.entries(manifest.exports).flatMap(([entry, to]) =>
  typeof to === 'string' ? [] : [`spillway${entry.slice(1)}`],
);

/** Imports every entry, and runs a call. */
const IMPORTS = `
for (const entry of ${JSON.stringify(entries)}) {
  if (Object.keys(await import(entry)).length === 0) throw new Error(entry + ' exports nothing');
}
const { createSpillway, tool } = await import('spillway');
const spillway = createSpillway({ tools: [tool({ name: 'twice', execute: (n) => n * 2 })] });
const result = await spillway.execute({ toolName: 'twice', input: 21 });
if (result.output?.content !== 42) throw new Error(JSON.stringify(result));
await spillway.close();
await import('spillway/schemas/plan.schema.json', { with: { type: 'json' } });
console.log(process.version);
`;

/** Uses the types as a strict program does. */
const TYPES = `
import { firstValueFrom, map, of, type Observable } from 'rxjs';
import { attemptTimeout, circuitBreaker, createBreaker, createSpillway, plan, retryBackoff, tool, type ToolResultEnvelope, type TurnResult } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { TestScheduler } from 'rxjs/testing';
import { z } from 'zod';

const flights = tool({ name: 'flight_search', input: z.object({ to: z.string() }), execute: ({ to }, { signal }) => (signal.aborted ? of() : of({ id: to })) });
const book = tool({ name: 'book', input: z.object({ id: z.string() }), execute: async ({ id }) => ({ reference: id.length }) });
const spillway = createSpillway({ tools: [flights, book], runtime: runtimeOn(new TestScheduler(() => undefined)) });
const trip = plan({ timeoutMs: 1_000 })
  .call('flights', flights, { to: 'NRT' })
  .call('book', book, ({ flights }) => ({ id: flights.id }), { needs: ['flights'] });
const settled: Observable<TurnResult> = spillway.turn(trip).pipe(map((event) => { if (event.type === 'settled' && event.source === 'turn') return event.result; throw new Error(event.type); }));
const guarded: Observable<number> = of(1).pipe(attemptTimeout(1_000), circuitBreaker(createBreaker()), retryBackoff({ maxAttempts: 2 }));
export const result: Promise<ToolResultEnvelope> = spillway.execute({ toolName: 'book', input: { id: 'x' } });
export const last: Promise<[TurnResult, number]> = Promise.all([firstValueFrom(settled), firstValueFrom(guarded)]);

// @ts-expect-error a node's input is typed from what it needs
plan().call('flights', flights, { to: 'NRT' }).call('book', book, ({ flights }) => ({ id: flights.nothing }), { needs: ['flights'] });
// @ts-expect-error so is the input of a tool
plan().call('flights', flights, { from: 'HEL' });
`;

const MODES = [
  { name: 'nodenext', module: 'nodenext', moduleResolution: 'nodenext' },
  { name: 'bundler', module: 'esnext', moduleResolution: 'bundler' },
];

/** Writes the project. `types` names the type packages that are there beside the package's own. */
export function writeConsumer(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const file = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  file('package.json', '{ "name": "consumer", "version": "1.0.0", "private": true, "type": "module" }\n');
  file('imports.js', IMPORTS);
  file('types.ts', TYPES);
  // The other entries: their declarations must compile too, the library's own not skipped.
  file('entries.ts', entries.map((entry, index) => `export * as entry${index} from '${entry}';\n`).join(''));
  for (const { name, ...resolution } of MODES) {
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      skipLibCheck: false,
    };
    const compilerOptions = { ...resolution, ...strict, target: 'es2022', lib: ['es2022', 'dom'], noEmit: true };
    file(
      `tsconfig.${name}.json`,
      JSON.stringify({ compilerOptions: { ...compilerOptions, types: [] }, files: ['types.ts'] }),
    );
    file(
      `tsconfig.${name}-node.json`,
      JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, files: ['types.ts', 'entries.ts'] }),
    );
  }
}

export const tsconfigs: readonly string[] = MODES.flatMap(({ name }) => [
  `tsconfig.${name}.json`,
  `tsconfig.${name}-node.json`,
]);
