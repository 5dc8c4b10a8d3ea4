import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import * as z from 'zod';
import type { Environment } from '../environment.ts';
import { locked } from './lock.ts';

/** What is kept of a sign-in at one server: who we are to its authorization server, and what that gave. */
export interface SignIn {
  url: string;
  client?: {
    client_id: string;
    client_secret?: string | undefined;
    issuer?: string | undefined;
    redirect_uris?: string[] | undefined;
    [more: string]: unknown;
  };
  tokens?: {
    access_token: string;
    token_type: string;
    refresh_token?: string | undefined;
    issuer?: string | undefined;
    [more: string]: unknown;
  };
  /** Since when its authorization server has answered each renewal of these tokens with HTTP 5xx, and how often. */
  failing?: { since: number; times: number };
}

const signInSchema: z.ZodType<SignIn> = z.strictObject({
  url: z.string(),
  client: z
    .looseObject({
      client_id: z.string(),
      client_secret: z.string().optional(),
      issuer: z.string().optional(),
      redirect_uris: z.array(z.string()).optional(),
    })
    .exactOptional(),
  tokens: z
    .looseObject({
      access_token: z.string(),
      token_type: z.string(),
      refresh_token: z.string().optional(),
      issuer: z.string().optional(),
    })
    .exactOptional(),
  failing: z.strictObject({ since: z.number(), times: z.number() }).exactOptional(),
});

const folderOf = (env: Environment): string => {
  const { SPILLWAY_SIGN_INS: own, XDG_STATE_HOME: state } = env;
  if (own !== undefined && own !== '') return own;
  // A relative one is to be passed over, by the specification of these folders.
  const home = state !== undefined && path.isAbsolute(state) ? state : path.join(homedir(), '.local', 'state');
  return path.join(home, 'spillway', 'sign-ins');
};

/** A token is for one address: another path of the same host can be another server. */
const nameOf = (url: URL): string => {
  const address = new URL(url);
  address.hash = '';
  return `${createHash('sha256').update(address.href).digest('hex').slice(0, 32)}.json`;
};

/** The sign-in at one server, in a file that only its owner can read. */
export class SignInFile {
  readonly #url: URL;
  readonly #path: string;

  constructor(url: URL, env: Environment) {
    this.#url = url;
    this.#path = path.join(folderOf(env), nameOf(url));
  }

  /** What is kept; `undefined` where nothing is, or nothing that can be read. */
  async read(): Promise<SignIn | undefined> {
    try {
      return signInSchema.safeParse(JSON.parse(await readFile(this.#path, 'utf8'))).data;
    } catch {
      return undefined;
    }
  }

  /** Puts it in place of what was kept, as a whole: another process may read it at any time. */
  async write(signIn: Omit<SignIn, 'url'>): Promise<void> {
    await this.#makeFolder();
    const making = `${this.#path}.${randomUUID()}`;
    try {
      const file = await open(making, 'wx', 0o600);
      try {
        await file.writeFile(`${JSON.stringify({ url: this.#url.href, ...signIn })}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(making, this.#path);
    } finally {
      await rm(making, { force: true });
    }
  }

  /**
   * Does what has to be of one piece with what is kept: waits until nobody else changes or renews it, in any process.
   * Many an authorization server takes a refresh token that comes twice for a stolen one, and ends all that came of it.
   */
  async alone<T>(work: (holds: () => Promise<boolean>) => Promise<T>): Promise<T> {
    await this.#makeFolder();
    return locked(`${this.#path}.lock`, work);
  }

  /**
   * Takes it away, once a renewal that runs is over: it would bring it back.
   * @returns whether there was one
   */
  async forget(): Promise<boolean> {
    return this.alone(async () => {
      const isKept = (await this.read()) !== undefined;
      await rm(this.#path, { force: true });
      return isKept;
    });
  }

  async #makeFolder(): Promise<void> {
    await mkdir(path.dirname(this.#path), { recursive: true, mode: 0o700 });
  }
}
