import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vitest/config';
import { edited, placesOf } from '../code-edit.ts';

/** A copy of the engine with one rule changed, which a law has to see. */
export interface Plant {
  /** The rule, as it is no longer kept. */
  readonly mistake: string;
  /** Under `src`; `text` keeps the rule and must stand there once, `instead` takes its place. */
  readonly file: string;
  readonly text: string;
  readonly instead: string;
}

const src = fileURLToPath(new URL('../../src/', import.meta.url));
const QUERY = '?planted=';

/** The address of a module of `src` as it is with a mistake planted in it or beneath it. */
export const plantedIn = (path: string, plant: Plant): string =>
  `${src}${path}${QUERY}${encodeURIComponent(JSON.stringify(plant))}`;

interface Planted {
  readonly file: string;
  readonly query: string;
  readonly plant: Plant;
}

const plantOf = (id: string): Planted | undefined => {
  const at = id.indexOf(QUERY);
  if (at < 0 || !id.startsWith(src)) return undefined;
  const plant = JSON.parse(decodeURIComponent(id.slice(at + QUERY.length))) as Plant;
  return { file: id.slice(src.length, at), query: id.slice(at), plant };
};

const imports = new Map<string, readonly string[]>();
const importsOf = (file: string): readonly string[] => {
  const known = imports.get(file);
  if (known !== undefined) return known;
  const statements = readFileSync(`${src}${file}`, 'utf8').matchAll(
    /^(?:import|export)\s+(?!type\b)[^'";]*?from\s+'(\.[^']+)'/gm,
  );
  const found = [...statements].map(([, from = '']) => posix.join(posix.dirname(file), from));
  imports.set(file, found);
  return found;
};

/** Whether a file is another one, or imports it, or imports what does. */
const reaches = (file: string, planted: string, seen: Set<string> = new Set()): boolean => {
  if (file === planted) return true;
  if (seen.has(file)) return false;
  seen.add(file);
  return importsOf(file).some((imported) => reaches(imported, planted, seen));
};

/**
 * Makes such copies as they are imported. A copy's imports are copies where they lead to the mistake; all else it
 * shares with the engine.
 */
export const plants = (): Plugin => ({
  name: 'planted',
  enforce: 'pre',
  resolveId(source, importer) {
    const from = importer === undefined ? undefined : plantOf(importer);
    if (from === undefined || !source.startsWith('.')) return undefined;
    const file = posix.join(posix.dirname(from.file), source);
    return `${src}${file}${reaches(file, from.plant.file) ? from.query : ''}`;
  },
  transform(code, id) {
    const here = plantOf(id);
    if (here === undefined || here.file !== here.plant.file) return undefined;
    const { mistake, file, text, instead } = here.plant;
    if (placesOf(code, text) !== 1)
      throw new Error(`${file} does not say "${text}" once any more: plant "${mistake}" in another place`);
    return { code: edited(code, text, instead), map: null };
  },
});
