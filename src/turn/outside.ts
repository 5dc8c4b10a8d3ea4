import type { ToolErrorKind } from '../contract/error-kind.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { expireAfter } from '../operators/expiry.ts';
import type { CallRecord } from './call-record.ts';

/** How a call can end that has not ended by itself. */
export type Ending = Extract<ToolErrorKind, 'canceled' | 'deadline_exceeded'>;

/** What was listened to, until it is called off. */
export interface Outside {
  cancel(): void;
}

/** Why a call must not even begin. */
export function obstacleTo({ layer, site, call, startedAtMs }: CallRecord): ToolExecutionError | undefined {
  if (layer.closed) return new ToolExecutionError('canceled', 'The layer is closed');
  if (site.signal?.aborted === true) return new ToolExecutionError('canceled', 'The caller had canceled the call before it began');
  return call.deadlineMs <= startedAtMs ? new ToolExecutionError('deadline_exceeded', 'The deadline of the call had passed before it began') : undefined;
}

/** Hears what can end a call from outside: its caller's signal and its own deadline. */
export function listenOutside({ site, call }: CallRecord, end: (kind: Ending, message: string) => void): Outside | undefined {
  const { signal, runtime } = site;
  if (signal === undefined && call.deadlineMs === Infinity) return undefined;
  const abort = (): void => end('canceled', 'The caller canceled the call');
  signal?.addEventListener('abort', abort, { once: true });
  const leftMs = Math.max(0, call.deadlineMs - runtime.now());
  const deadline = leftMs === Infinity ? undefined : expireAfter(leftMs, runtime, () => end('deadline_exceeded', 'The deadline of the call passed'));
  return {
    cancel: () => {
      deadline?.cancel();
      signal?.removeEventListener('abort', abort);
    },
  };
}
