import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { defer, lastValueFrom, retry, throwError, timer, type Observable } from 'rxjs';
import * as z from 'zod';
import type { Environment } from '../environment.ts';

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

const LOCK_LOOK_MS = 50;
/** A renewal takes no longer; what is older is left of one that came to nothing. */
const LOCK_STALE_MS = 10_000;

/** Takes away a lock that is left, or waits a little. */
const passed = async (lock: string): Promise<void> => {
  try {
    const { mtimeMs } = await stat(lock);
    if (Date.now() - mtimeMs > LOCK_STALE_MS) await rm(lock, { recursive: true, force: true });
    else await lastValueFrom(timer(LOCK_LOOK_MS));
  } catch {
    // It was let go of meanwhile.
  }
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
    const folder = path.dirname(this.#path);
    await mkdir(folder, { recursive: true, mode: 0o700 });
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
   * Waits until nobody else renews it, in any process: many an authorization server takes a refresh token that comes
   * twice for a stolen one, and ends all that came of it.
   */
  async hold(): Promise<void> {
    const lock = this.#lock;
    const isTaken = (error: unknown): Observable<unknown> =>
      (error as NodeJS.ErrnoException).code === 'EEXIST' ? defer(() => passed(lock)) : throwError(() => error);
    await lastValueFrom(defer(() => mkdir(lock)).pipe(retry({ delay: isTaken })), { defaultValue: undefined });
  }

  async letGo(): Promise<void> {
    await rm(this.#lock, { recursive: true, force: true });
  }

  get #lock(): string {
    return `${this.#path}.lock`;
  }

  /** @returns whether there was one */
  async forget(): Promise<boolean> {
    const isKept = (await this.read()) !== undefined;
    await rm(this.#path, { force: true });
    return isKept;
  }
}
