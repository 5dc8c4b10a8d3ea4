import type { DedupeOutcome, DedupeReading, DedupeRecord, DedupeState } from '../../contract/store.ts';
import { seededRandom } from '../../policy/random.ts';
import { LONG_MS, check, claimOf, failure, same, type HarnessCase, type StoreHarness } from './check.ts';

const STEPS = 400;
const KEYS: readonly string[] = ['a', 'b', '{c}', 'd:e'];
const TOOLS: readonly string[] = ['search', 'book'];
const SESSIONS: readonly string[] = ['s1', 's2', 's'];
/** Over as soon as a moment has passed: whether it has is no matter of luck. */
const MOMENT_MS = 1;
const AFTER_MS = 10;

/** What a store should hold of a key. */
interface Known {
  readonly version: number;
  readonly state: DedupeState;
  readonly tool: string;
  readonly sessionKey: string;
  readonly payload: string | undefined;
  readonly lapsed: boolean;
}

const outcomes: readonly ((n: number) => DedupeOutcome)[] = [
  (n) => ({ state: 'done', ttlMs: LONG_MS, payload: String(n) }),
  () => ({ state: 'failed', ttlMs: LONG_MS, error: failure }),
  () => ({ state: 'cancelled', ttlMs: LONG_MS, error: failure }),
];

const seen = ({ version, state, tool, payload, request }: DedupeRecord): Omit<Known, 'lapsed'> => ({
  version,
  state,
  tool,
  sessionKey: request.sessionKey,
  payload,
});
const shown = (known: Known | undefined): unknown => {
  if (known === undefined) return undefined;
  const { lapsed: _lapsed, ...rest } = known;
  return rest;
};

const play = async ({ store, pass, open }: StoreHarness, seed: number, history: string[]): Promise<void> => {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const handles = [store, (await open?.()) ?? store];
  const model = new Map<string, Known>();
  const highest = new Map<string, number>();

  const fresh = (key: string, version: number): void => {
    check(version > (highest.get(key) ?? 0), `version ${version} of ${key} after ${highest.get(key) ?? 0}`);
    highest.set(key, version);
  };
  const reads = (key: string, reading: DedupeReading | undefined): void => {
    same(reading === undefined ? undefined : seen(reading.record), shown(model.get(key)), `the record of ${key}`);
    const known = model.get(key);
    if (reading === undefined || known?.state !== 'inflight') return;
    same((reading.record.lockUntilMs ?? 0) <= reading.atMs, known.lapsed, `whether the lease of ${key} has lapsed`);
  };
  const claim = async (key: string): Promise<void> => {
    const known = model.get(key);
    const tool = pick(TOOLS);
    const sessionKey = pick(SESSIONS);
    const [short, brief] = [random() < 0.3, random() < 0.1];
    const over = random() < 0.4 ? undefined : (known?.version ?? 0) - (random() < 0.3 ? 1 : 0);
    const expected = known === undefined || (over === known.version && (known.state !== 'inflight' || known.lapsed));
    history.push(`claim ${key} over ${over}${short ? ', short lease' : ''}${brief ? ', short life' : ''}`);
    const { created, ...reading } = await pick(handles).setIfNotExists(
      claimOf(key, {
        tool,
        sessionKey,
        leaseMs: short || brief ? MOMENT_MS : LONG_MS,
        ttlMs: brief ? MOMENT_MS : LONG_MS,
      }),
      over,
    );
    same(created, expected, `whether ${key} was granted`);
    if (!created) return reads(key, reading);
    fresh(key, reading.record.version);
    const now: Known = {
      version: reading.record.version,
      state: 'inflight',
      tool,
      sessionKey,
      payload: undefined,
      lapsed: short,
    };
    same(seen(reading.record), shown(now), `the claim of ${key}`);
    if (short || brief) await pass(AFTER_MS);
    if (brief) model.delete(key);
    else model.set(key, now);
  };
  const end = async (key: string, n: number): Promise<void> => {
    const known = model.get(key);
    // What a settled record does with a further outcome is not said: no owner asks.
    if (known !== undefined && known.state !== 'inflight') return;
    const version = (known?.version ?? 1) - (random() < 0.3 ? 1 : 0);
    const outcome = pick(outcomes)(n);
    history.push(`${outcome.state} ${key} of version ${version}`);
    const record = await pick(handles).compareAndSet(key, version, outcome);
    same(record !== undefined, known?.version === version, `whether the outcome of ${key} was accepted`);
    if (record === undefined || known === undefined) return;
    fresh(key, record.version);
    model.set(key, { ...known, state: outcome.state, payload: outcome.payload, version: record.version });
    reads(key, { record, atMs: record.updatedAtMs });
  };
  const renew = async (key: string): Promise<void> => {
    const known = model.get(key);
    const version = (known?.version ?? 1) - (random() < 0.3 ? 1 : 0);
    const short = random() < 0.3;
    history.push(`renew ${key} of version ${version}${short ? ', short' : ''}`);
    const renewed = await pick(handles).renew(key, version, short ? MOMENT_MS : LONG_MS);
    same(renewed, known?.state === 'inflight' && known.version === version, `whether ${key} was renewed`);
    if (!renewed || known === undefined) return;
    if (short) await pass(AFTER_MS);
    model.set(key, { ...known, lapsed: short });
  };
  const remove = async (key: string): Promise<void> => {
    const known = model.get(key);
    const version = random() < 0.5 ? undefined : (known?.version ?? 1) - (random() < 0.3 ? 1 : 0);
    history.push(`delete ${key} of version ${version}`);
    const deleted = await pick(handles).delete(key, version);
    same(
      deleted,
      known !== undefined && (version === undefined || version === known.version),
      `whether ${key} was deleted`,
    );
    if (deleted) model.delete(key);
  };
  const list = async (): Promise<void> => {
    const keys = { tool: [] as string[], session: [] as string[] };
    const [tool, sessionKey] = [pick(TOOLS), pick(SESSIONS)];
    history.push(`list ${tool}, ${sessionKey}`);
    for await (const { key } of pick(handles).byTool(tool)) keys.tool.push(key);
    for await (const { key } of pick(handles).bySession(sessionKey)) keys.session.push(key);
    const expected = (holds: (known: Known) => boolean): string[] =>
      [...model]
        .filter(([, known]) => holds(known))
        .map(([key]) => key)
        .toSorted();
    same(
      keys.tool.toSorted(),
      expected((known) => known.tool === tool),
      `records of the tool ${tool}`,
    );
    same(
      keys.session.toSorted(),
      expected((known) => known.sessionKey === sessionKey),
      `records of the session ${sessionKey}`,
    );
  };

  for (let n = 0; n < STEPS; n++) {
    const key = pick(KEYS);
    const draw = random();
    if (draw < 0.35) await claim(key);
    else if (draw < 0.55) await end(key, n);
    else if (draw < 0.7) await renew(key);
    else if (draw < 0.78) await remove(key);
    else if (draw < 0.82) await list();
    else if (draw < 0.84) await pick(handles).sweep();
    else {
      history.push(`get ${key}`);
      reads(key, await pick(handles).get(key));
    }
  }
};

/** Random operations, one after the other, beside a model of what must be there. */
export const storeModelCase = (seed: number): HarnessCase => ({
  name: `${STEPS} random operations do what a simple model of them does`,
  run: async (harness) => {
    const history: string[] = [];
    try {
      await play(harness, seed, history);
    } catch (error) {
      throw new Error(
        `seed ${seed}, step ${history.length}: ${error instanceof Error ? error.message : String(error)}; ` +
          `before it: ${history.slice(-6).join('; ')}`,
        { cause: error },
      );
    }
  },
});
