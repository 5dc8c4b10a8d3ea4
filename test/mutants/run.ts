import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SLOW, areaOf, type Area } from './areas.ts';
import { candidates, type Candidate } from './candidates.ts';
import { Workspace, type StageEnd } from './workspace.ts';

/**
 * `npm run mutants`: makes one line of the source wrong at a time and asks whether a test notices. `-- --only policy/`,
 * which may be repeated, takes those of one folder or file. `--results FILE` keeps what was found, and passes over what
 * that file says already. `--jobs 2` works on two at a time, `--seeds` runs so many seeds of the simulation,
 * `--timeout` bounds a run of the quick tests in seconds, `--quick` asks those and the simulation only, `--survivors`
 * asks those again that survived, `--check` only looks whether the lists still fit the source. Ends with 1 when fewer
 * than 95 % were noticed.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    jobs: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1000' },
    timeout: { type: 'string', default: '300' },
    results: { type: 'string' },
    quick: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
    /** Without asking first whether the tests are green as they are. */
    unproved: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});

interface Result {
  readonly id: string;
  readonly file: string;
  readonly breaks: string;
  readonly noticed: boolean;
  readonly by: string;
}

const GOAL = 0.95;
const root = join(import.meta.dirname, '..', '..');
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const whole = (option: string, text: string): number => {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0) throw new RangeError(`--${option} must be a whole number, not ${text}`);
  return number;
};
const seeds = whole('seeds', values.seeds);

const kept = (path: string): Result[] => {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Result);
};

/** Everything that may notice a mutant of an area, the quickest first. */
const stages = ({ near, far, simulated }: Area): ReadonlyArray<(workspace: Workspace) => Promise<StageEnd>> => [
  (workspace) => workspace.test(near, true),
  ...(simulated && seeds > 0 ? [(workspace: Workspace) => workspace.simulate(seeds)] : []),
  ...(values.quick
    ? []
    : [
        (workspace: Workspace) =>
          workspace.test([...SLOW.filter((path) => near.some((folder) => path.startsWith(folder))), ...far], false),
      ]),
];

/** The first stage that is not green, if any. */
const firstRed = async (area: Area, workspace: Workspace): Promise<StageEnd | undefined> => {
  for (const stage of stages(area)) {
    const end = await stage(workspace);
    if (!end.green) return end;
  }
  return undefined;
};

/** A test that is red by itself would notice everything. */
async function prove(areas: ReadonlySet<Area>, workspace: Workspace): Promise<void> {
  for (const area of areas) {
    const red = await firstRed(area, workspace);
    if (red !== undefined) throw new Error(`the tests are red without any mutant: ${red.by}`);
  }
}

async function ask({ id, file, breaks, right, wrong }: Candidate, workspace: Workspace): Promise<Result> {
  await workspace.write(file, wrong);
  try {
    const red = await firstRed(areaOf(file), workspace);
    return { id, file, breaks, noticed: red !== undefined, by: red?.by ?? 'nothing' };
  } finally {
    await workspace.write(file, right);
  }
}

async function work(queue: Candidate[], workspace: Workspace, told: (result: Result) => void): Promise<void> {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) told(await ask(next, workspace));
}

function report(results: readonly Result[]): boolean {
  const survivors = results.filter(({ noticed }) => !noticed);
  const share = results.length === 0 ? 1 : (results.length - survivors.length) / results.length;
  print(`\nnoticed ${results.length - survivors.length} of ${results.length} (${(100 * share).toFixed(1)} %)`);
  for (const { file, breaks } of survivors) print(`survived: src/${file}: ${breaks}`);
  return share >= GOAL;
}

async function main(): Promise<boolean> {
  const all = candidates(root, values.only);
  print(`${all.length} mutants`);
  if (values.check) return true;
  const byId = new Map((values.results === undefined ? [] : kept(values.results)).map((result) => [result.id, result]));
  const queue = all.filter(({ id }) => !byId.has(id) || (values.survivors && byId.get(id)?.noticed === false));
  const jobs = Math.max(1, Math.min(whole('jobs', values.jobs), queue.length));
  const workspaces = await Promise.all(
    Array.from({ length: jobs }, () => Workspace.create(root, whole('timeout', values.timeout) * 1_000)),
  );
  const told = (result: Result): void => {
    byId.set(result.id, result);
    if (values.results !== undefined) appendFileSync(values.results, `${JSON.stringify(result)}\n`);
    print(`${result.noticed ? 'noticed ' : 'SURVIVED'} src/${result.file}: ${result.breaks} (${result.by})`);
  };
  try {
    const [first] = workspaces;
    if (first !== undefined && queue.length > 0 && !values.unproved)
      await prove(new Set(queue.map(({ file }) => areaOf(file))), first);
    await Promise.all(workspaces.map((workspace) => work(queue, workspace, told)));
  } finally {
    await Promise.all(workspaces.map((workspace) => workspace.remove()));
  }
  return report(all.flatMap(({ id }) => byId.get(id) ?? []));
}

process.exitCode = (await main()) ? 0 : 1;
