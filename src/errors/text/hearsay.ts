import type { ToolExecutionError } from '../../contract/tool-error.ts';

/** Shared by every copy of this package in a process, as the brand of an error is. */
const HEARSAY = Symbol.for('spillway.hearsay');

/**
 * Marks an error that was made of what another program threw or said, where no field of that said what happened: only
 * its words did, or nothing at all. Words are good enough to say whether trying again can help. They are no proof of
 * what was done before them.
 */
export function asHearsay(error: ToolExecutionError): ToolExecutionError {
  return Object.defineProperty(error, HEARSAY, { value: true });
}

/** Whether an error says nothing but words of what its tool did. Never throws. */
export function isHearsay(error: ToolExecutionError): boolean {
  try {
    return (error as unknown as Readonly<Record<symbol, unknown>>)[HEARSAY] === true;
  } catch {
    return false;
  }
}
