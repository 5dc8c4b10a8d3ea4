import type { ClientsEntry } from '../../contract/formats/scenario-entry.ts';
import type { SimulatedTime } from '../time.ts';
import { exponential } from './chance.ts';

/** Begins one call or turn, and says when it has ended. */
export type Begin = (ended: () => void) => void;

type Poisson = Extract<ClientsEntry, { poisson: unknown }>['poisson'];

const rateAt = ({ rate_per_s, surges = [] }: Poisson, atMs: number): number => {
  const surge = surges.find(({ from_s, to_s }) => atMs >= from_s * 1_000 && atMs < to_s * 1_000);
  return rate_per_s * (surge?.factor ?? 1);
};

/**
 * Open clients: they ask whatever became of those before them. Thinned from the highest rate, so that surges are exact.
 */
const startPoisson = (
  entry: Poisson,
  time: SimulatedTime,
  untilMs: number,
  random: () => number,
  begin: Begin,
): void => {
  const highest = entry.rate_per_s * Math.max(1, ...(entry.surges ?? []).map(({ factor }) => factor));
  let atMs = 0;
  const next = (): void => {
    do atMs += exponential(random, 1_000 / highest);
    while (atMs < untilMs && random() * highest >= rateAt(entry, atMs));
    if (atMs >= untilMs) return;
    time.at(atMs, 0, () => {
      begin(() => undefined);
      next();
    });
  };
  next();
};

/** Closed clients: each asks again a while after its answer. */
const startClosed = (
  { users, think_ms }: { users: number; think_ms: number },
  time: SimulatedTime,
  untilMs: number,
  random: () => number,
  begin: Begin,
): void => {
  const think = (): void => {
    const atMs = time.now() + exponential(random, think_ms);
    if (atMs < untilMs) time.at(atMs, 0, () => begin(think));
  };
  for (let i = 0; i < users; i++) think();
};

const startBursts = (
  { count, at_s = 0, every_s }: { count: number; at_s?: number; every_s?: number },
  time: SimulatedTime,
  untilMs: number,
  begin: Begin,
): void => {
  for (let atMs = at_s * 1_000; atMs < untilMs; atMs += (every_s ?? Infinity) * 1_000)
    time.at(atMs, 0, () => {
      for (let i = 0; i < count; i++) begin(() => undefined);
    });
};

/** Lets clients ask until `untilMs`. */
export function startClients(
  entry: ClientsEntry,
  time: SimulatedTime,
  untilMs: number,
  random: () => number,
  begin: Begin,
): void {
  if ('poisson' in entry) startPoisson(entry.poisson, time, untilMs, random, begin);
  else if ('closed' in entry) startClosed(entry.closed, time, untilMs, random, begin);
  else startBursts(entry.burst, time, untilMs, begin);
}
