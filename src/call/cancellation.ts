import type { ToolErrorKind } from '../contract/error-kind.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { abortKind } from '../errors/abort-kind.ts';
import { expireAfter } from '../operators/timing/expiry.ts';
import { onAbort } from '../operators/work/on-abort.ts';
import type { CallContext } from './context.ts';

/** How a call can end that has not ended by itself. */
export type EndingKind = Extract<ToolErrorKind, 'canceled' | 'deadline_exceeded' | 'timeout'>;

export interface Ending {
  readonly kind: EndingKind;
  readonly message: string;
  /** The reason of the caller's signal. */
  readonly cause?: unknown;
}

const ABORTED = {
  canceled: 'The caller canceled the call',
  timeout: 'The time that the caller gave the call was over',
} as const;
const ABORTED_BEFORE = {
  canceled: 'The caller had canceled the call before it began',
  timeout: 'The time that the caller gave the call was over before it began',
} as const;

/** The listeners of a call on its signal and its deadline; `cancel` removes them. */
export interface Listening {
  cancel(): void;
}

/** Why a call must not even begin. */
export function obstacleTo({ layer, site, call, startedAtMs }: CallContext): ToolExecutionError | undefined {
  if (layer.closed) return new ToolExecutionError('canceled', 'The layer is closed');
  if (site.signal?.aborted === true) {
    const cause: unknown = site.signal.reason;
    const kind = abortKind(cause);
    return new ToolExecutionError(kind, ABORTED_BEFORE[kind], { executed: false, cause });
  }
  return call.deadlineMs <= startedAtMs
    ? new ToolExecutionError('deadline_exceeded', 'The deadline of the call had passed before it began')
    : undefined;
}

/** Calls `end` when the caller's signal aborts or the call's own deadline passes; `undefined` where it has neither. */
export function listenForCancellation(
  { site, call }: CallContext,
  end: (ending: Ending) => void,
): Listening | undefined {
  const { signal, runtime } = site;
  if (signal === undefined && call.deadlineMs === Infinity) return undefined;
  const abort = (): void => {
    const cause: unknown = signal?.reason;
    const kind = abortKind(cause);
    end({ kind, message: ABORTED[kind], cause });
  };
  const stopHearing = signal === undefined ? undefined : onAbort(signal, abort);
  const leftMs = Math.max(0, call.deadlineMs - runtime.now());
  const deadline =
    leftMs === Infinity
      ? undefined
      : expireAfter(leftMs, runtime, () =>
          end({ kind: 'deadline_exceeded', message: 'The deadline of the call passed' }),
        );
  return {
    cancel: () => {
      deadline?.unsubscribe();
      stopHearing?.();
    },
  };
}
