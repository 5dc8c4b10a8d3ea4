import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Runtime } from '../contract/runtime.ts';
import { HttpTransport } from '../providers/mcp/http-transport.ts';
import { MESSAGE_BYTES } from '../providers/mcp/stdio/line-reader.ts';
import { StdioTransport } from '../providers/mcp/stdio/transport.ts';
import type { ServerTransport } from './wire.ts';

/** Makes the transport of a connection that is about to be made. */
export type Launch = () => ServerTransport;

/** A server that is started as a process. */
export interface CommandServer {
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside the few variables that a server gets by default. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server over Streamable HTTP. */
export interface UrlServer {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs in where the server asks for it. */
  readonly authProvider?: OAuthClientProvider;
}

export type ServerPlace = CommandServer | UrlServer;

/** Lines of a server's stderr that are kept for the error that tells of its end. */
const STDERR_LINES = 20;

/**
 * How a server is reached, each time that it is.
 * @param heard told each line that a server writes on stderr
 */
export function launchOf(place: ServerPlace, runtime: Runtime, heard?: (line: string) => void): Launch {
  if ('url' in place) {
    const { url, headers = {}, authProvider } = place;
    return () => new HttpTransport({ url: new URL(url), headers, authProvider, runtime });
  }
  const { command, args = [], env, cwd } = place;
  return () =>
    new StdioTransport({
      command,
      args,
      cwd,
      env: { ...getDefaultEnvironment(), ...env },
      stderrLines: STDERR_LINES,
      maxMessageBytes: MESSAGE_BYTES,
      ...(heard === undefined ? {} : { heard }),
      runtime,
    });
}
