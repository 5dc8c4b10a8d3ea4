import type { ToolResultEnvelope } from '../../src/contract/envelope.ts';
import type { ToolEvent, TraceEvent } from '../../src/contract/event.ts';
import type { Mode } from '../../src/contract/policy.ts';
import { createSpillway, type Spillway } from '../../src/spillway.ts';
import { scriptedTool, type ScriptedStep } from '../../src/testing/scripted-tool.ts';
import { z } from 'zod';
import { Dice } from './dice.ts';
import type { Sometimes } from './findings.ts';
import type { Outcome } from './simulate.ts';
import { SideWorld } from './side-world.ts';

type Of<T extends ToolEvent['type']> = Extract<ToolEvent, { type: T }>;

const MODES = ['on', 'shadow', 'off'] as const;
const CAUTION: readonly Mode[] = MODES;
const SPAN_MS = 400;
const TIMEOUT_MS = 20;
const ENABLED = 'TOOL_RELIABILITY_ENABLED';
const OPEN_MODE = 'TOOL_RELIABILITY_OPEN_MODE';
const WOULD: Readonly<Record<string, Sometimes>> = {
  time_out: 'shadow would time out',
  retry: 'shadow would retry',
  reject: 'shadow would reject',
  replay: 'shadow would replay',
};

/** One call as it was made: under which switches, and what its tool does of itself. */
interface Made {
  readonly n: number;
  readonly mode: Mode;
  readonly startedMs: number;
  readonly step: ScriptedStep;
  readonly fits: boolean;
  readonly keyed: boolean;
  runs: number;
  settled: boolean;
  readonly would: Set<string>;
}

const stepOf = (seed: number, n: number, fails: number): ScriptedStep => {
  const dice = new Dice(seed, 61, n);
  const afterMs = dice.pick([0, 5, 10, 15, 30, 60]);
  const error = dice.chance(0.7)
    ? Object.assign(new Error('unavailable'), { status: 503 })
    : Object.assign(new Error('no'), { status: 404 });
  return dice.chance(fails) ? { afterMs, error } : { afterMs, value: { n } };
};

/** A layer whose switches are thrown while it works. */
class SwitchWorld extends SideWorld {
  readonly #spillway: Spillway;
  readonly #layerMode: Mode;
  readonly #toolModes: readonly Mode[];
  readonly #fails: number;
  readonly #made = new Map<number, Made>();
  readonly #byCall = new Map<string, Made>();
  #enabled = true;
  #observes = false;
  #beginning: Made | undefined;

  constructor(seed: number, log?: (line: string) => void) {
    super(seed, log);
    const dice = new Dice(seed, 60);
    this.#layerMode = dice.pick(['on', 'on', 'shadow', 'off']);
    this.#toolModes = [0, 1].map(() => dice.pick(MODES));
    this.#fails = dice.pick([0.1, 0.5, 0.9]);
    const tools = this.#toolModes.map((mode, index) => {
      const input = z
        .looseObject({ n: z.number(), misfit: z.undefined().optional() })
        .transform((given) => ({ ...given, checked: true }));
      const retry = {
        strategy: 'constant',
        initialDelayMs: 5,
        jitterPercent: 0,
        maxAttempts: 3,
        maxTotalTimeMs: 1_000,
      } as const;
      const policy = {
        mode,
        effects: 'read',
        timeoutMs: TIMEOUT_MS,
        retry,
        breaker: { failureThreshold: 2, cooldownMs: 50 },
        dedupe: { volatile: ['n'] },
      } as const;
      const script = (given: unknown): ScriptedStep => this.#runs(given as { readonly n: number });
      return { ...scriptedTool({ name: `t${index}`, policy, script }, this.runtime.scheduler), input };
    });
    this.#spillway = createSpillway({ tools, runtime: this.runtime, mode: this.#layerMode, retryBudget: false });
    this.#spillway.trace$.subscribe((event) => this.#hear(event));
  }

  throwSwitch(name: typeof ENABLED | typeof OPEN_MODE, isOff: boolean): void {
    if (isOff) process.env[name] = 'off';
    else Reflect.deleteProperty(process.env, name);
    if (name === ENABLED) this.#enabled = !isOff;
    else this.#observes = isOff;
    if ([...this.#made.values()].some(({ settled }) => !settled))
      this.findings.saw('a switch is thrown while calls run');
  }

  call(n: number, tool: number, fits: boolean, key: string | undefined): void {
    const own = this.#toolModes[tool] ?? 'on';
    const cautious = CAUTION[Math.max(CAUTION.indexOf(own), CAUTION.indexOf(this.#layerMode))] ?? 'on';
    const mode = this.#enabled ? cautious : 'off';
    const made: Made = {
      n,
      mode,
      startedMs: this.runtime.now(),
      step: stepOf(this.seed, n, this.#fails),
      fits,
      keyed: key !== undefined,
      runs: 0,
      settled: false,
      would: new Set(),
    };
    this.#made.set(n, made);
    const input = fits ? { n } : { n, misfit: true };
    const request = {
      toolName: `t${tool}`,
      input,
      ...(key === undefined ? {} : { idempotencyKey: key, session: 's', actor: 'a' }),
    };
    this.#beginning = made;
    void this.#spillway.execute(request).then((result) => this.#gives(made, result));
    this.#beginning = undefined;
  }

  review(): void {
    for (const { n, settled } of this.#made.values()) this.check(settled, 'RES-2', () => `call ${n} never ends`);
  }

  #runs(input: { readonly n: number }): ScriptedStep {
    const made = this.#made.get(input.n);
    if (made === undefined) return {};
    made.runs++;
    if (made.mode !== 'on') {
      const isOwn = made.runs === 1 && this.runtime.now() === made.startedMs && !('checked' in input);
      this.check(
        isOwn,
        'SWI-1',
        () =>
          `call ${made.n} (${made.mode}): run ${made.runs}, ${this.runtime.now() - made.startedMs} ms after its start, with ${JSON.stringify(input)}`,
      );
      if (!made.fits) this.findings.saw('a misfit goes straight through');
    }
    return made.step;
  }

  #hear(event: TraceEvent): void {
    this.heard(event);
    if (event.source !== 'call') return;
    if (event.type === 'call_started' && this.#beginning !== undefined) this.#byCall.set(event.callId, this.#beginning);
    const made = this.#byCall.get(event.callId);
    if (made === undefined) return;
    if (event.type === 'shadow') this.#shadows(made, event);
    if (event.type === 'rejected') this.#rejected(made, event);
    if (event.type === 'settled') this.#settled(made, event);
  }

  #shadows(made: Made, { would, message }: Of<'shadow'>): void {
    this.check(
      made.mode === 'shadow',
      'SWI-2',
      () => `call ${made.n} is ${made.mode}, and shadow tells ${would}: ${message}`,
    );
    made.would.add(would);
    const saw = WOULD[would];
    if (saw !== undefined) this.findings.saw(saw);
  }

  #rejected(made: Made, { error }: Of<'rejected'>): void {
    this.check(made.mode === 'on', 'SWI-1', () => `call ${made.n} (${made.mode}) is refused: ${error.kind}`);
    if (error.kind !== 'circuit_open') return;
    this.findings.saw('a breaker refuses');
    this.check(!this.#observes, 'SWI-3', () => `call ${made.n} is refused by a breaker that only observes`);
  }

  /** What its caller gets. */
  #gives({ n, mode, step }: Made, { output, error }: ToolResultEnvelope): void {
    if (mode === 'on') return;
    const isOwn =
      'error' in step
        ? error?.code === 'execution_error'
        : (output?.content as { readonly n?: number } | undefined)?.n === n;
    this.check(
      isOwn,
      'SWI-1',
      () =>
        `call ${n} (${mode}) gives ${JSON.stringify(output?.content)} or ${error?.code}, and that is not its tool’s`,
    );
  }

  #settled(made: Made, { result }: Of<'settled'>): void {
    made.settled = true;
    if (made.mode === 'on') return this.#settledOn(result.fromCache ? undefined : made);
    const { step, startedMs } = made;
    this.findings.saw(made.mode === 'off' ? 'straight through' : 'in shadow');
    const tookMs = this.runtime.now() - startedMs;
    const failed = 'error' in step;
    const isOwnEnd =
      tookMs === (step.afterMs ?? 0) &&
      result.attempts === 1 &&
      made.runs === 1 &&
      !result.fromCache &&
      result.retriedBy === undefined;
    this.check(
      isOwnEnd,
      'SWI-1',
      () =>
        `call ${made.n} (${made.mode}) takes ${tookMs} ms of ${step.afterMs}, ${result.attempts} attempts, ${made.runs} runs, and gives ${JSON.stringify(result)}`,
    );
    if (made.mode !== 'shadow') return;
    this.check(
      made.fits || made.would.has('reject'),
      'SWI-2',
      () => `call ${made.n} does not fit, and shadow says nothing`,
    );
    // It is told with the end, and so in this very instant.
    const isLate = tookMs > TIMEOUT_MS;
    this.check(
      made.would.has('time_out') === isLate,
      'SWI-2',
      () =>
        `call ${made.n} took ${tookMs} ms of ${TIMEOUT_MS}, and shadow ${isLate ? 'says nothing of it' : 'would have ended it'}`,
    );
    const isRetriable = failed && (step.error as { readonly status?: number }).status === 503;
    this.check(
      made.would.has('retry') === isRetriable,
      'SWI-2',
      () =>
        `call ${made.n} ${isRetriable ? 'could be retried, and shadow says nothing' : 'would be retried by shadow'}`,
    );
  }

  /** A guarded call, as far as the switches are about it: its limit holds. */
  #settledOn(made: Made | undefined): void {
    if (made === undefined || !made.fits || made.keyed) return;
    if (this.#observes && made.runs > 0) this.findings.saw('an open breaker only observes');
    const tookMs = this.runtime.now() - made.startedMs;
    const mostMs = 3 * TIMEOUT_MS + 2 * 5;
    this.check(
      tookMs <= mostMs,
      'SWI-3',
      () => `guarded call ${made.n} takes ${tookMs} ms, three attempts and their waits ${mostMs}`,
    );
  }
}

/**
 * One run of the switches of: modes of tools and of the layer, and the environment's own switches thrown while
 * calls run. What a call without guard comes to is worked out from its tool's script alone.
 */
export async function simulateSwitches(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const saved = { enabled: process.env[ENABLED], openMode: process.env[OPEN_MODE] };
  const world = new SwitchWorld(seed, log);
  const dice = new Dice(seed, 62);
  const { scheduler } = world.runtime;
  const at = (): number => dice.int(0, SPAN_MS / 5) * 5;
  for (let n = 1; n <= 14; n++) {
    const [tool, fits, key] = [dice.int(0, 1), !dice.chance(0.15), dice.chance(0.3) ? `k${dice.int(0, 2)}` : undefined];
    scheduler.after(at(), () => world.call(n, tool, fits, key));
  }
  for (const name of [ENABLED, OPEN_MODE] as const) {
    if (!dice.chance(0.5)) continue;
    const fromMs = at();
    scheduler.after(fromMs, () => world.throwSwitch(name, true));
    scheduler.after(fromMs + at(), () => world.throwSwitch(name, false));
  }
  try {
    await world.toTheEnd();
    if (world.findings.violations.length === 0) world.review();
    return world.outcome;
  } finally {
    for (const [name, value] of [
      [ENABLED, saved.enabled],
      [OPEN_MODE, saved.openMode],
    ] as const) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
  }
}
