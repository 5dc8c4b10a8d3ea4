import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface SimulateCommand {
  readonly path: string;
  readonly policies: readonly string[];
  readonly seeds?: number;
  readonly engine?: 'fidelity' | 'fleet';
  readonly maxCalls?: number;
  readonly html?: string;
  readonly svg?: string;
  readonly json: boolean;
}

export const SIMULATE_HELP: string = `spillway simulate SCENARIO.yaml [options]

Runs a scenario, clients and servers under load and in trouble, once for each policy and seed, in
simulated time, and says what each policy made of it. The same seed gives the same bytes.

  --policy FILE   a policy file; may be given again; default: the policies of the scenario itself
  --seeds N       how many seeds, 1 to 10000; default: the scenario's own, else 20
  --engine NAME   fidelity: the layer itself; fleet: its pure policies alone, for many thousand clients
  --max-calls N   how many calls all policies and seeds may make together, be it in one run; default:
                  30000000, of which one run makes 10000000 at the most
  --html FILE     write table and charts to a page
  --svg FILE      write the charts as one picture
  --json          all that was found as JSON
  --help          this text

Exit codes: 0 every expectation of the scenario holds, 1 one is broken, 2 usage, or a bad file.
`;

export const SIMULATE_OPTIONS = {
  policy: { type: 'string', multiple: true },
  seeds: { type: 'string' },
  engine: { type: 'string' },
  'max-calls': { type: 'string' },
  html: { type: 'string' },
  svg: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** More takes hours and says no more. */
const SEEDS_MAX = 10_000;

const seedsOf = (text: string | undefined): { readonly seeds?: number } => {
  if (text === undefined) return {};
  const seeds = Number(text);
  if (!/^\d+$/.test(text) || seeds < 1 || seeds > SEEDS_MAX)
    throw new UsageError(`--seeds must be an integer from 1 to ${SEEDS_MAX}, not ${JSON.stringify(text.slice(0, 64))}`);
  return { seeds };
};

const maxCallsOf = (text: string | undefined): { readonly maxCalls?: number } => {
  if (text === undefined) return {};
  const maxCalls = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(maxCalls) || maxCalls < 1)
    throw new UsageError(`--max-calls must be an integer from 1, not ${JSON.stringify(text.slice(0, 64))}`);
  return { maxCalls };
};

const engineOf = (text: string | undefined): { readonly engine?: 'fidelity' | 'fleet' } => {
  if (text === undefined) return {};
  if (text !== 'fidelity' && text !== 'fleet')
    throw new UsageError(`--engine must be fidelity or fleet, not ${JSON.stringify(text.slice(0, 64))}`);
  return { engine: text };
};

/**
 * Reads what follows `spillway simulate`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseSimulate(args: readonly string[]): SimulateCommand | undefined {
  const { values, positionals } = parseOptions(args, SIMULATE_OPTIONS);
  if (values.help) return undefined;
  const { policy: policies = [], html, svg, json } = values;
  if ([...policies, html, svg].includes('')) throw new UsageError('--policy, --html and --svg need the name of a file');
  const path = oneFile('simulate SCENARIO.yaml', 'scenario file', positionals);
  return {
    path,
    policies,
    json,
    ...seedsOf(values.seeds),
    ...engineOf(values.engine),
    ...maxCallsOf(values['max-calls']),
    ...(html === undefined ? {} : { html }),
    ...(svg === undefined ? {} : { svg }),
  };
}
