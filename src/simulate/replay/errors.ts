import { TOOL_ERROR_KINDS, type ToolErrorKind } from '../../contract/error-kind.ts';
import type { ErrorReport } from '../../contract/event.ts';
import type { Effects } from '../../contract/policy.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { doubted } from '../../policy/recovery/proof.ts';
import type { RecordedAttempt } from './trace/attempts.ts';

const isKind = (kind: string): kind is ToolErrorKind => (TOOL_ERROR_KINDS as readonly string[]).includes(kind);

/** The class, where neither structure nor kind gave it. */
const classOf = ({ rule, classification }: Pick<RecordedAttempt, 'rule' | 'classification'>): object =>
  classification !== undefined && (rule === 'entrance' || rule === 'words')
    ? { classification, worded: rule === 'words' }
    : {};

/** An error that the layer reads as it read the recorded one. */
export function errorOf(
  report: ErrorReport,
  attempt: Pick<RecordedAttempt, 'rule' | 'classification'>,
  effects: Effects,
): ToolExecutionError {
  const { code, status, retryAfterMs, uncertain = false, executed } = report;
  const options = {
    uncertain,
    ...(executed === undefined ? {} : { executed }),
    ...classOf(attempt),
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status }),
    // A hint that cannot be read is no number, for which JSON has `null`.
    ...(retryAfterMs === undefined ? {} : { retryAfterMs: retryAfterMs ?? Number.NaN }),
  };
  const kind = isKind(report.kind) ? report.kind : 'execution_error';
  const error = new ToolExecutionError(kind, report.message, options);
  // What is in no doubt, and would be by its structure, said of itself that nothing was done.
  if (uncertain || doubted(error, effects) === error) return error;
  return new ToolExecutionError(kind, report.message, { ...options, executed: false });
}
