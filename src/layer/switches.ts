import type { Mode } from '../contract/policy.ts';

/**
 * The switches that a person throws from outside. Asked anew for each call, so that throwing one acts at once.
 */
export interface Switches {
  /** How a tool's calls run: the most cautious of the layer's mode, the tool's own and the kill switch. */
  modeOf(tool: Mode | undefined): Mode;
  /** Breakers count and never refuse. */
  readonly breakersObserve: boolean;
  /** A call without a key of its own may get one that is computed from its input. */
  readonly deriveKeys: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where there is a process there is an environment; elsewhere the options alone decide. */
const environment = (): Environment =>
  (globalThis as { readonly process?: { readonly env?: Environment } }).process?.env ?? {};

/**
 * A switch that may not be read is one that nobody has thrown: Deno without `--allow-env` throws at the look, or
 * already at `env`.
 */
const readSwitch = (env: () => Environment, name: string): string | undefined => {
  try {
    return env()[name];
  } catch {
    return undefined;
  }
};

const OFF: ReadonlySet<string> = new Set(['false', 'off', '0', 'no']);
const isOff = (value: string | undefined): boolean => value !== undefined && OFF.has(value.trim().toLowerCase());

const CAUTION: Readonly<Record<Mode, number>> = { on: 0, shadow: 1, off: 2 };

/**
 * @param mode the layer's own mode
 * @param env where the switches are read from
 */
export function createSwitches(mode: Mode, env: () => Environment = environment): Switches {
  return {
    modeOf: (tool = 'on') => {
      if (isOff(readSwitch(env, 'TOOL_RELIABILITY_ENABLED'))) return 'off';
      return CAUTION[tool] > CAUTION[mode] ? tool : mode;
    },
    get breakersObserve() {
      return isOff(readSwitch(env, 'TOOL_RELIABILITY_OPEN_MODE'));
    },
    get deriveKeys() {
      return (
        !isOff(readSwitch(env, 'TOOL_RELIABLE_DERIVE_IDEMPOTENCY')) &&
        !isOff(readSwitch(env, 'TOOL_RELIABILITY_DERIVE_IDEMPOTENCY'))
      );
    },
  };
}
