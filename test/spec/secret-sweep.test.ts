import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AROUND } from './secret-sweep/around.ts';
import { SECRETS } from './secret-sweep/kit.ts';
import { SAID } from './secret-sweep/said.ts';
import { sweep } from './secret-sweep/ways-out.ts';

/** Where it is meant to come out. */
const MEANT: ReadonlyArray<readonly [place: string, way: string]> = [
  // What an order names is told as it is, to who has the token.
  ['the name of a tool', 'admin /debug/tool-reliability'],
  ['the name of an alternative', 'admin /debug/tool-reliability'],
  ['the name of a breaker', 'admin /debug/tool-reliability'],
  // A hook's reason is the host's own word to the model.
  ['a hook that blocks', 'what a model reads'],
];

/** What a sink is given by its host, who did not tell it what the layer was told to take out. */
const GIVEN: ReadonlyArray<readonly [place: string, way: string]> = [
  ...['the name of a tool', 'the name of an alternative'].flatMap((place) =>
    ['prometheus', 'admin /metrics', 'metrics and log records of OpenTelemetry'].map((way) => [place, way] as const),
  ),
  ['a tool’s description', 'spans'],
];

const around = (text: string, needle: string): string => {
  const at = text.indexOf(needle);
  return at === -1 ? '' : text.slice(Math.max(0, at - 60), at + 60);
};

describe.each(Object.entries(SECRETS))('R-11.4 a secret that is known %s', (known, secret) => {
  const meant = known === 'by its name' ? [...MEANT, ...GIVEN] : MEANT;
  let folder = '';
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'spillway-sweep-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.each(Object.entries({ ...SAID, ...AROUND }))('R-11.4 in %s comes out nowhere', async (name, place) => {
    const { own, trace, texts } = await sweep(place, secret, folder);
    const found = [...texts].flatMap(([way, text]) =>
      secret.needles.flatMap((needle) => (text.includes(needle) ? [`${way}: ${around(text, needle)}`] : [])),
    );
    const isMeant = (one: string): boolean => meant.some(([from, way]) => from === name && one.startsWith(`${way}:`));
    expect(found.filter((one) => !isMeant(one))).toEqual([]);
    expect(own).toContain('settled');
    expect(trace.includes('[redacted]')).toBe(place.told);
  });
});
