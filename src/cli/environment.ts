/** What is read of the environment, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable; what may not be read is not set. Deno without `--allow-env` throws at the look, or already at `env`. */
const variable = (name: string | symbol): string | undefined => {
  if (typeof name !== 'string') return undefined;
  try {
    return process.env[name];
  } catch {
    return undefined;
  }
};

/** The environment of this process, in which a variable that may not be read is one that is not set. Its names are not listed. */
export const environment: Environment = new Proxy<Record<string, string | undefined>>(
  {},
  {
    get: (_, name) => variable(name),
    has: (_, name) => variable(name) !== undefined,
    getOwnPropertyDescriptor: (_, name) => {
      const value = variable(name);
      return value === undefined ? undefined : { value, enumerable: true, configurable: true, writable: false };
    },
  },
);
