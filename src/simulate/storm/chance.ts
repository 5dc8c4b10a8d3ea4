import { seededRandom } from '../../policy/random.ts';

/** FNV-1a. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
};

/**
 * A stream of numbers of its own for each part of a scenario, so that another policy changes neither who asks when nor
 * how long work takes.
 */
export const streamOf = (seed: number, part: string): (() => number) => seededRandom(hashOf(`${seed} ${part}`));

/** A number of the standard normal distribution: Box and Muller. */
export const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** A number of the exponential distribution. */
export const exponential = (random: () => number, mean: number): number => -Math.log(1 - random()) * mean;

/** The 99th percentile of the standard normal distribution. */
export const Z99 = 2.3263478740408408;

/** A lognormal sampler with this median and 99th percentile. */
export const lognormal = (medianMs: number, p99Ms: number, random: () => number): (() => number) => {
  const sigma = Math.log(p99Ms / medianMs) / Z99;
  return () => medianMs * Math.exp(sigma * normal(random));
};
