import { TOOL_ERROR_KIND_TRAITS } from '../contract/error-kind.ts';
import { ToolExecutionError, type ClassifiedError, type ErrorReader } from '../contract/tool-error.ts';
import { classOfListedStatus, classOfStatus, kindOfStatus } from './status.ts';
import { CAUSE_DEPTH_MAX, STATUSES, asStatus, firstOf, read, retriableOf, retryAfterOf } from './structure.ts';
import { isTyped } from './tool.ts';

/** By, but for codes. */
const classified = (error: ToolExecutionError): ClassifiedError => {
  const { status, retryAfterMs, classification, kind } = error;
  const listed = status === undefined ? undefined : classOfListedStatus(status);
  const hinted = retryAfterMs !== undefined && retryAfterMs >= 0 ? 'transient' : undefined;
  return { error, classification: listed ?? hinted ?? classification ?? TOOL_ERROR_KIND_TRAITS[kind].classification ?? 'transient' };
};

/**
 * Reads an error by its fields and those of its causes, the outermost first, without a table of codes, names or words: its status, whether it is
 * an abort, `Retry-After`, and whether its maker says that it can be tried again. What none of them says is transient. A `ToolExecutionError` is
 * what it says. Never throws.
 */
export const readFields: ErrorReader = (thrown, wallNow) => {
  if (isTyped(thrown)) return classified(thrown);
  let status: number | undefined;
  let retryAfterMs: number | undefined;
  let retriable: boolean | undefined;
  for (let depth = 0, link = thrown; depth < CAUSE_DEPTH_MAX && link !== undefined; depth++, link = read(link, 'cause')) {
    status ??= firstOf(link, STATUSES, asStatus);
    retryAfterMs ??= retryAfterOf(link, wallNow);
    retriable ??= retriableOf(link);
  }
  const aborted = status === undefined && read(thrown, 'name') === 'AbortError';
  const kind = aborted ? 'canceled' : status === undefined ? 'execution_error' : kindOfStatus(status);
  const classification = status !== undefined ? classOfStatus(status) : retriable === undefined ? undefined : retriable ? 'transient' : 'permanent';
  return classified(new ToolExecutionError(kind, 'read for what it decides', { status, classification, retryAfterMs, executed: true, uncertain: aborted || kind === 'timeout' }));
};
