import { ToolExecutionError } from '../contract/tool-error.ts';
import { METHODS } from './message.ts';
import type { Asked } from './wire.ts';

/** What only asks: a server that died over it can be asked again. A tool is the layer's to repeat, or not. */
const RESENDABLE: ReadonlySet<string> = new Set([
  METHODS.ping,
  METHODS.list,
  METHODS.discover,
  METHODS.initialize,
  METHODS.setLevel,
  METHODS.subscribe,
  METHODS.unsubscribe,
  METHODS.listen,
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
  'completion/complete',
]);

export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Whether no server took a request, for a reason that a person can do something about and a client is not told. */
export const untaken = (error: unknown, { method }: Asked): boolean =>
  error instanceof ToolExecutionError &&
  !error.executed &&
  (method === METHODS.initialize || error.classification === 'permanent');

/** Whether a request may be sent again after its connection was lost. */
export const mayResend = (error: unknown, { method }: Asked): boolean =>
  error instanceof ToolExecutionError &&
  error.kind === 'transport_error' &&
  error.classification !== 'permanent' &&
  RESENDABLE.has(method);
