import { parseArgs } from 'node:util';
import { PLANTS, type Plant } from './recorded-store.ts';
import { soak } from './soak.ts';

/**
 * `npm run soak -- --seconds 60`: 10,000 calls over 500 keys by three processes on one Redis, with kills, pauses longer
 * than the lease, restarts of Redis and a network that delays, slices, swallows and cuts. `--forgetful`: a Redis that
 * keeps nothing over a restart; then what that costs is reported. `--plant <name>`: with a mistake put in, which must
 * be found. Ends with 1 when the promise was broken.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    calls: { type: 'string', default: '10000' },
    keys: { type: 'string', default: '500' },
    workers: { type: 'string', default: '3' },
    forgetful: { type: 'boolean', default: false },
    plant: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const numberOf = (name: 'seconds' | 'seed' | 'calls' | 'keys' | 'workers', min: number): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < min)
    throw new RangeError(`--${name} must be an integer from ${min}, not ${values[name]}`);
  return value;
};
const { plant } = values;
if (plant !== undefined && !PLANTS.some((name) => name === plant))
  throw new RangeError(`--plant must be one of ${PLANTS.join(', ')}, not ${plant}`);
/** Below this a fault may not have come to pass by chance. */
const ENOUGH_SECONDS = 30;
const SHOWN_MAX = 20;

const seed = numberOf('seed', 0);
const seconds = numberOf('seconds', 1);
if (!values.json) print(`seed ${seed}`);
const report = await soak({
  seconds,
  seed,
  calls: numberOf('calls', 1),
  keys: numberOf('keys', 1),
  workers: numberOf('workers', 2),
  forgetful: values.forgetful,
  ...(plant === undefined ? {} : { plant: plant as Plant }),
});
const missed =
  seconds < ENOUGH_SECONDS
    ? []
    : Object.entries({ ...report.faults, takeovers: report.takeovers, replays: report.replays }).filter(
        ([, times]) => times === 0,
      );
if (values.json) print(JSON.stringify({ seed, ...report }));
else {
  const { answered, executions, claims, takeovers, recorded, replays, reissued, excused, forgotten, violations } =
    report;
  print(
    `faults: ${Object.entries(report.faults)
      .map(([name, times]) => `${times} ${name}`)
      .join(', ')}`,
  );
  print(
    `answers: ${Object.entries(report.answers)
      .map(([name, times]) => `${times} ${name}`)
      .join(', ')}; ${replays} of them replays, ${reissued} calls asked again`,
  );
  print(
    `${answered} calls answered, ${claims} claims, ${takeovers} of them takeovers, ${executions} executions, ${recorded} outcomes recorded in ${report.seconds.toFixed(1)} s`,
  );
  if (excused > 0)
    print(
      `${excused} effects began after their lease, in a process that stood still between the check and the effect: only the resource can refuse these, by the fence`,
    );
  if (values.forgetful)
    print(`${forgotten} claims and effects ran beside others that Redis had forgotten: what this Redis' settings cost`);
  for (const violation of violations.slice(0, SHOWN_MAX)) print(`BROKEN: ${violation}`);
  if (violations.length > SHOWN_MAX) print(`... and ${violations.length - SHOWN_MAX} more`);
  for (const [name] of missed) print(`never happened: ${name}`);
  print(
    violations.length === 0 && missed.length === 0
      ? 'the promise holds'
      : `the promise does not hold; again with --seed ${seed}`,
  );
}
process.exitCode = report.violations.length === 0 && missed.length === 0 ? 0 : 1;
