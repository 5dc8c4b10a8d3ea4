import type {
  ClientCapabilities,
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestParams,
  ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';
import { isObservable, type Observable } from 'rxjs';
import type { ToolOutput } from '../../../contract/output.ts';
import { checkKeys } from '../../../policy/check.ts';

/** A folder or a file that a server may work with. */
export interface McpRoot {
  /** Where it is: a `file:` URI. */
  readonly uri: string;
  /** What it is called, for a person. Default: nothing. */
  readonly name?: string;
}

/**
 * What the host answers to a server's questions. A server mostly lists the tools that need such an answer only to a
 * client that can give it: without handlers they are not among the provider's tools, see `hiddenTools()`.
 */
export interface McpHandlers {
  /**
   * Asks a person: a form (`requestedSchema`), or with `mode: 'url'` a page to visit. Gives `{ action: 'accept',
   * content }`, `{ action: 'decline' }` or `{ action: 'cancel' }`; defaults of the form are filled in. The signal is
   * aborted when the server no longer wants to know. The time until the answer counts against no timeout of the call.
   */
  readonly elicit?: (request: ElicitRequestParams, signal: AbortSignal) => ToolOutput<ElicitResult>;
  /**
   * Asks a model: `messages` and `maxTokens` as the server wants them. Gives `{ model, role: 'assistant', content }`.
   * Ask a person before it costs anything. The time until the answer counts against no timeout of the call.
   */
  readonly sample?: (request: CreateMessageRequestParams, signal: AbortSignal) => ToolOutput<CreateMessageResult>;
  /** The folders that a server may work with; given as a stream, the server is told each time that they change. */
  readonly roots?: readonly McpRoot[] | Observable<readonly McpRoot[]>;
}

/** The capabilities that a server is told of a host with these handlers. */
export function capabilitiesOf({ elicit, sample, roots }: McpHandlers): ClientCapabilities {
  return {
    ...(elicit === undefined ? {} : { elicitation: { form: { applyDefaults: true }, url: {} } }),
    ...(sample === undefined ? {} : { sampling: {} }),
    ...(roots === undefined ? {} : { roots: { listChanged: isObservable(roots) } }),
  };
}

/** @throws RangeError for what is no handler */
export function checkHandlers(of: string, handlers: McpHandlers): void {
  checkKeys(`${of}: handlers`, handlers, ['elicit', 'sample', 'roots']);
  for (const [name, handler] of Object.entries({ elicit: handlers.elicit, sample: handlers.sample }))
    if (handler !== undefined && typeof handler !== 'function')
      throw new RangeError(`handlers.${name} must be a function that gives the answer, not ${typeof handler}`);
  const { roots } = handlers;
  if (roots !== undefined && !Array.isArray(roots) && !isObservable(roots))
    throw new RangeError('handlers.roots must be a list of { uri, name? }, or an Observable of such lists');
}
