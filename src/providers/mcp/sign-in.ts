import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';

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
