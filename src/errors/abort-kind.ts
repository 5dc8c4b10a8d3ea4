import { readStructure } from './structure.ts';

/** Every framework has a class of its own for it, or takes the platform's. */
const TIMEOUT_NAME = /Timeout(Error|Exception)$/;

const noTime = (): number => 0;

/**
 * What an abort by a caller means: `timeout` where the reason of its signal is a timeout's, as that of
 * `AbortSignal.timeout` or of a framework that gives each tool a time, else `canceled`. Only the reason itself decides:
 * what caused it is another matter. Never throws.
 *
 * @param reason the `reason` of an aborted signal
 */
export function abortKind(reason: unknown): 'canceled' | 'timeout' {
  const names = readStructure(reason, noTime).links[0]?.names ?? [];
  return names.some((name) => TIMEOUT_NAME.test(name)) ? 'timeout' : 'canceled';
}
