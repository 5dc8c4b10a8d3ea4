import { TOOL_ERROR_KIND_TRAITS } from '../contract/error-kind.ts';
import { ToolExecutionError, isToolExecutionError, type ErrorReader } from '../contract/tool-error.ts';
import { classOfListedStatus, classOfStatus, kindOfStatus } from './status.ts';
import { CAUSE_DEPTH_MAX, STATUSES, asStatus, firstOf, read, retriableOf, retryAfterOf } from './structure.ts';
import { flagOf, isToolErrorKind } from './tool.ts';

/**
 * Reads an error by its fields and those of its causes, the outermost first, without a table of codes, names or words: its status, `Retry-After`,
 * whether its maker says that it can be tried again, and whether it is an abort. What none of them says is transient. A `ToolExecutionError` is
 * what it says. Never throws.
 */
export const readFields: ErrorReader = (thrown, wallNow) => {
  const said = isToolExecutionError(thrown) ? read(thrown, 'kind') : undefined;
  const own = isToolErrorKind(said) ? said : undefined;
  let status: number | undefined;
  let retryAfterMs: number | undefined;
  let retriable: boolean | undefined;
  let aborted = false;
  for (let depth = 0, link = thrown; depth < (own === undefined ? CAUSE_DEPTH_MAX : 1) && link !== undefined; depth++, link = read(link, 'cause')) {
    status ??= firstOf(link, STATUSES, asStatus);
    retryAfterMs ??= retryAfterOf(link, wallNow);
    retriable ??= retriableOf(link);
    aborted ||= read(link, 'name') === 'AbortError';
  }
  aborted &&= status === undefined;
  const kind = own ?? (aborted ? 'canceled' : status === undefined ? 'execution_error' : kindOfStatus(status));
  const uncertain = own === undefined ? aborted || kind === 'timeout' : flagOf(thrown, 'uncertain');
  const error = new ToolExecutionError(kind, 'read for what it decides', { status, retryAfterMs, executed: own === undefined ? true : flagOf(thrown, 'executed'), uncertain });
  // The order is that of.
  const listed = status === undefined ? undefined : classOfListedStatus(status);
  const hinted = retryAfterMs !== undefined && retryAfterMs >= 0 ? 'transient' : undefined;
  const makers = read(thrown, 'classification') ?? (retriable === undefined ? undefined : retriable ? 'transient' : 'permanent');
  const classification = makers === 'transient' || makers === 'permanent' ? makers : undefined;
  const unlisted = status === undefined || own !== undefined ? undefined : classOfStatus(status);
  return { error, classification: listed ?? hinted ?? unlisted ?? classification ?? TOOL_ERROR_KIND_TRAITS[kind].classification ?? 'transient' };
};
