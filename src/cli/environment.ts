/** What is read of the environment, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The process's own, as it was at the start. Deno without `--allow-env` throws at the look at a variable, or already
 * here.
 */
const given = ((): Environment => {
  try {
    return process.env;
  } catch {
    return {};
  }
})();

/** One variable; what may not be read is not set. */
const variable = (name: string | symbol): string | undefined => {
  if (typeof name !== 'string') return undefined;
  try {
    return given[name];
  } catch {
    return undefined;
  }
};

const guarded: Environment = new Proxy<Record<string, string | undefined>>(
  {},
  {
    get: (_, name) => variable(name),
    has: (_, name) => variable(name) !== undefined,
    getOwnPropertyDescriptor: (_, name) => {
      const value = variable(name);
      return value === undefined ? undefined : { value, enumerable: true, configurable: true, writable: true };
    },
  },
);

/**
 * Where the environment may not be read, gives the guarded one to libraries, too: some look at variables that nobody
 * sets (`yaml` at `LOG_TOKENS`), and would throw. Where reading is allowed, nothing changes.
 */
const shielded = (): Environment => {
  try {
    // One that nobody sets, and for which nobody grants a permission of its own.
    void process.env['SPILLWAY_PROBE'];
  } catch {
    Object.defineProperty(process, 'env', { value: guarded, configurable: true, enumerable: true, writable: true });
  }
  return guarded;
};

/**
 * The environment of this process, in which a variable that may not be read is one that is not set. Its names are not
 * listed.
 */
export const environment: Environment = shielded();
