import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { TemporarilyUnavailableError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { read } from '../../errors/structure.ts';

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What a provider can have beside what the SDK asks for. */
export interface SendsItself {
  /** Sends a request of a sign-in, in place of the transport. */
  sendSignIn(send: Fetch, url: string | URL, init: RequestInit): Promise<Response>;
}

const sendsItself = (provider: object | undefined): provider is SendsItself =>
  typeof read(provider, 'sendSignIn') === 'function';

/** Sends a request of a sign-in, as its provider wants it. */
export const sendSignIn = (
  provider: OAuthClientProvider | undefined,
  url: string | URL,
  init: RequestInit,
): Promise<Response> => (sendsItself(provider) ? provider.sendSignIn(fetch, url, init) : fetch(url, init));

/**
 * A sign-in that fails for a reason that passes. It is of the one kind of error that the SDK hands on: for any other it
 * has a person sign in anew.
 */
export class PassingFailure extends TemporarilyUnavailableError {
  readonly failure: ToolExecutionError;

  constructor(failure: ToolExecutionError) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Sign-ins for one request: one, and one for rights that it turned out to need. */
export const SIGN_INS_MAX = 2;

/** Where a person was sent to sign in, until they have. */
export interface SentTo {
  url: URL | undefined;
}

/** The same provider, which also notes where it sends a person. Its methods are its own: it may have private fields. */
export const noting = (provider: OAuthClientProvider, sentTo: SentTo): OAuthClientProvider =>
  new Proxy(provider, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (name === 'redirectToAuthorization' && args[0] instanceof URL) sentTo.url = args[0];
        return Reflect.apply(value, target, args);
      };
    },
  });
