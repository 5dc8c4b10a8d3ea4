import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import { inDoubt } from '../model-text.ts';

/** Why the outcome of a run is not in the store: another holds its key, or the store did not get it. */
export type FailedRecording = 'superseded' | 'unrecorded';

/**
 * A result that says itself that its own run left no record: another may run under its key as well. The trace
 * alone is not read by callers.
 */
export function withRecording(result: ToolResultEnvelope, recorded: FailedRecording): ToolResultEnvelope {
  const { error } = result;
  if (error === undefined) return { ...result, recorded };
  const { modelText } = error;
  const told = modelText === undefined || error.uncertain === true ? {} : { modelText: inDoubt(modelText) };
  return { ...result, error: { ...error, uncertain: true, ...told } };
}
