import { TOOL_ERROR_KIND_TRAITS, type Classification, type ToolErrorKind } from '../contract/error-kind.ts';
import {
  isToolExecutionError,
  type ClassifiedError,
  type DecisiveError,
  type ErrorReader,
} from '../contract/tool-error.ts';
import { classOfListedStatus, classOfStatus, kindOfStatus } from './status.ts';
import { STATUSES } from './paths.ts';
import { CAUSE_DEPTH_MAX, asStatus, firstOf, read, retriableOf, retryAfterOf } from './structure.ts';
import { flagOf, isToolErrorKind } from './tool.ts';

/** The class by, but for codes: a listed status, a hint, what else its maker says, the kind's own. */
const classified = (
  error: DecisiveError,
  status: number | undefined,
  said: Classification | undefined,
  worded = false,
): ClassifiedError => {
  const listed = status === undefined ? undefined : classOfListedStatus(status);
  const hinted = error.retryAfterMs !== undefined && error.retryAfterMs >= 0 ? 'transient' : undefined;
  const rule = worded && listed === undefined && hinted === undefined && said !== undefined ? { rule: 'words' } : {};
  return {
    error,
    ...rule,
    classification: listed ?? hinted ?? said ?? TOOL_ERROR_KIND_TRAITS[error.kind].classification ?? 'transient',
  };
};

const classIn = (thrown: unknown): Classification | undefined => {
  const said = read(thrown, 'classification');
  return said === 'transient' || said === 'permanent' ? said : undefined;
};

/** A `ToolExecutionError` made by this or another version of the package. */
const ours = (thrown: unknown, kind: ToolErrorKind, wallNow: () => number): ClassifiedError => {
  const executed = flagOf(thrown, 'executed') ?? TOOL_ERROR_KIND_TRAITS[kind].executed;
  const error = {
    kind,
    executed,
    uncertain: flagOf(thrown, 'uncertain') ?? false,
    retryAfterMs: retryAfterOf(thrown, wallNow),
  };
  return classified(error, firstOf(thrown, STATUSES, asStatus), classIn(thrown), flagOf(thrown, 'worded'));
};

const foreign = (thrown: unknown, wallNow: () => number): ClassifiedError => {
  let status: number | undefined;
  let retryAfterMs: number | undefined;
  let retriable: boolean | undefined;
  let aborted = false;
  for (
    let depth = 0, link = thrown;
    depth < CAUSE_DEPTH_MAX && link !== undefined;
    depth++, link = read(link, 'cause')
  ) {
    status ??= firstOf(link, STATUSES, asStatus);
    retryAfterMs ??= retryAfterOf(link, wallNow);
    retriable ??= retriableOf(link);
    aborted ||= read(link, 'name') === 'AbortError';
  }
  if (status !== undefined) {
    const kind = kindOfStatus(status);
    return classified(
      { kind, executed: true, uncertain: kind === 'timeout', retryAfterMs },
      status,
      classOfStatus(status),
    );
  }
  const flagged = retriable === undefined ? undefined : retriable ? 'transient' : 'permanent';
  return classified(
    { kind: aborted ? 'canceled' : 'execution_error', executed: true, uncertain: aborted, retryAfterMs },
    status,
    classIn(thrown) ?? flagged,
  );
};

/**
 * Reads an error by its fields and those of its causes, the outermost first, without a table of codes, names or words:
 * its status, `Retry-After`, whether its maker says that it can be tried again, and whether it is an abort. What none
 * of them says is transient. A `ToolExecutionError` is what it says. Never throws.
 */
export const readFields: ErrorReader = (thrown, wallNow) => {
  const kind = isToolExecutionError(thrown) ? read(thrown, 'kind') : undefined;
  return isToolErrorKind(kind) ? ours(thrown, kind, wallNow) : foreign(thrown, wallNow);
};
