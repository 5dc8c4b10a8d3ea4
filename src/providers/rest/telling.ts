import type { Runtime } from '../../contract/runtime.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { deeply, withoutSecrets } from '../../policy/redact/known.ts';
import { unusable } from './response.ts';

/** What is needed to tell of an answer. */
export interface Telling {
  /** A text, or a value with all its texts, without the manifest's secrets. */
  readonly redact: <T>(told: T) => T;
  readonly runtime: Runtime;
}

/** Takes secrets out of whatever a service answers. */
export const redactor = (secrets: readonly string[]): Telling['redact'] => {
  const shown = withoutSecrets(secrets);
  return <T>(told: T): T => {
    try {
      return secrets.length === 0 ? told : (deeply(told, shown) as T);
    } catch {
      throw unusable('The answer is nested too deeply to be looked through for secrets');
    }
  };
};

/** The same error in other words. */
export const reworded = (error: ToolExecutionError, message: string, safeMessage?: string): ToolExecutionError => {
  const { kind, code, status, retryAfterMs, uncertain, executed, classification, worded, cause } = error;
  const facts = { code, status, retryAfterMs, uncertain, executed, classification, worded, cause };
  return new ToolExecutionError(kind, message, { ...facts, safeMessage });
};

/**
 * What was thrown, without secrets in its words: a service may repeat one anywhere, in its content type, in where it
 * redirects to.
 */
export const retold = (thrown: unknown, redact: Telling['redact']): unknown => {
  if (!(thrown instanceof ToolExecutionError)) return thrown;
  const [message, safeMessage] = [redact(thrown.message), redact(thrown.safeMessage)];
  const isSame = message === thrown.message && safeMessage === thrown.safeMessage;
  return isSame ? thrown : reworded(thrown, message, safeMessage);
};
