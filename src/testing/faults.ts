import { NEVER, switchMap } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/output.ts';
import type { Tool } from '../contract/tool.ts';
import { abortable } from '../operators/work/abortable.ts';
import { checkKeys, checkNumber, duration, integer, number } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';

/** What goes wrong, and how often. Executions are counted from 1 by each wrapped tool, retries included. */
export interface FaultOptions {
  /** The first this many executions fail. Default 0. */
  readonly failFirst?: number;
  /**
   * What a failure is: a Node code such as `ECONNRESET`, or an HTTP status such as 503 or `'503'`. Default
   * `ECONNRESET`.
   */
  readonly code?: string | number;
  /** The share of the other executions that fail, from 0 to 1. Default 0. */
  readonly rate?: number;
  /** A wait before the tool is really called, in milliseconds. Default 0. Failures come at once. */
  readonly latencyMs?: number;
  /**
   * `true`: never answer, whatever the signal says. A number: that many of the first executions do. Goes before
   * `failFirst`. Default false.
   */
  readonly hang?: boolean | number;
}

const COUNT_MAX = 1_000_000_000;
const KEYS = ['failFirst', 'code', 'rate', 'latencyMs', 'hang'];

const check = (faults: FaultOptions): void => {
  const { failFirst, code, rate, latencyMs, hang } = faults;
  checkKeys('withFaults', faults, KEYS);
  if (failFirst !== undefined) checkNumber('failFirst', failFirst, integer(0, COUNT_MAX));
  if (rate !== undefined) checkNumber('rate', rate, number(0, 1));
  if (latencyMs !== undefined) checkNumber('latencyMs', latencyMs, duration);
  if (hang !== undefined && typeof hang !== 'boolean') checkNumber('hang', hang, integer(0, COUNT_MAX));
  if (typeof code === 'string' && /^[A-Za-z_]\w{0,63}$/.test(code)) return;
  if (code !== undefined)
    checkNumber('code', typeof code === 'string' && /^\d+$/.test(code) ? Number(code) : code, STATUS);
};

/** Only what the entrance takes for a status. */
const STATUS = { ...integer(400, 599), rule: 'an error code such as ECONNRESET, or an HTTP status from 400 to 599' };

/** An error as the real thing would be: what looks at it cannot tell the difference. */
const faultOf = (code: string | number): Error =>
  Number.isFinite(Number(code))
    ? Object.assign(new Error(`Injected fault: status ${code}`), { status: Number(code) })
    : Object.assign(new Error(`Injected fault: ${code}`), { code: String(code) });

/**
 * A tool that fails as ordered before it does its work: for demonstrations, and for tests of what a turn survives.
 * The same seed of the runtime gives the same failures.
 *
 * @param faults what goes wrong
 * @param runtime where the wait and the chance of `rate` come from
 * @throws RangeError for an option out of its range
 *
 * @example
 * const flaky = withFaults(search, { failFirst: 2, code: 'ECONNRESET', latencyMs: 50 });
 */
export function withFaults<I, O, Name extends string>(
  tool: Tool<I, O, Name>,
  faults: FaultOptions,
  runtime: Runtime = liveRuntime,
): Tool<I, O, Name> {
  check(faults);
  const { failFirst = 0, code = 'ECONNRESET', rate = 0, latencyMs = 0, hang = false } = faults;
  const hangs = hang === true ? Infinity : Number(hang);
  let executions = 0;
  return {
    ...tool,
    execute: (input, context): ToolOutput<O> => {
      executions++;
      if (executions <= hangs) return NEVER;
      if (executions <= failFirst || (rate > 0 && runtime.random() < rate)) throw faultOf(code);
      if (latencyMs === 0) return tool.execute(input, context);
      return runtime.after(latencyMs).pipe(switchMap(() => abortable(() => tool.execute(input, context))));
    },
  };
}
