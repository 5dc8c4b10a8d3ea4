import { access, constants, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { planFileSchema, type PlanFile } from '../contract/formats/plan-file.ts';
import type { ServerEntry } from '../contract/formats/server-entry.ts';
import type { Problem } from '../formats/yaml.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { createSpillway } from '../spillway.ts';
import { tool } from '../layer/tool.ts';
import { CHECK_HELP, parseCheck } from './arguments/check.ts';
import { EXIT, type CommandContext } from './context.ts';
import type { Environment } from './environment.ts';
import { isManifest } from './plan/file-kind.ts';
import { problemsBeside, soundParts, type PlacedTool } from './plan/lenient.ts';
import { PlanFileError, examinePlan, placeName } from './plan/file.ts';
import { launchOf } from './plan/servers.ts';
import { messageLine, messageLines } from './show/text.ts';
import { policyOf } from './plan/tools.ts';
import { wordedProblems } from './show/wording.ts';

/** Something wrong, and where: line and column are missing for a file that could not be read. */
interface Finding {
  readonly line?: number;
  readonly column?: number;
  readonly at?: string;
  readonly message: string;
}

interface FileReport {
  readonly file: string;
  readonly kind: 'plan' | 'manifest';
  readonly problems: readonly Finding[];
  readonly warnings: readonly string[];
  /** What is in a file with which nothing is wrong. */
  readonly holds?: string;
}

const count = (many: number, what: string): string => `${many} ${what}${many === 1 ? '' : 's'}`;

const exists = async (file: string, mode: number): Promise<boolean> => {
  try {
    await access(file, mode);
    return true;
  } catch {
    return false;
  }
};

const isFolder = async (folder: string): Promise<boolean> => {
  try {
    return (await stat(folder)).isDirectory();
  } catch {
    return false;
  }
};

/** Whether the program of a server is there, as far as one can know without starting it. */
const programIsThere = async (command: string, folders: string): Promise<boolean> => {
  // Windows finds programs by more rules than these.
  if (process.platform === 'win32') return true;
  if (command.includes('/')) return exists(command, constants.X_OK);
  const found = await Promise.all(
    folders
      .split(path.delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => exists(path.join(folder, command), constants.X_OK)),
  );
  return found.includes(true);
};

/** What servers need of this machine: folders must be there, programs should. */
const checkServers = async (
  servers: Readonly<Record<string, ServerEntry>>,
  folder: string,
): Promise<{ readonly problems: Problem[]; readonly warnings: string[] }> => {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  for (const [name, entry] of Object.entries(servers)) {
    const { command } = entry;
    if (command === undefined) continue;
    const { cwd, command: program, env } = launchOf({ ...entry, command }, folder);
    if (!(await isFolder(cwd)))
      problems.push({
        message: `${cwd} is no folder; it starts at the folder of the plan file`,
        at: ['servers', name, 'cwd'],
      });
    else if (!(await programIsThere(program, env['PATH'] ?? '')))
      warnings.push(`servers.${name}: there is no program ${program} here`);
  }
  return { problems, warnings };
};

/** What policies say that they cannot mean; of a tool whose server has not been asked, effects are unknown. */
const checkPolicies = (
  tools: readonly PlacedTool[],
  profile: PlanFile['profile'],
): { readonly problems: Problem[]; readonly warnings: string[] } => {
  const problems: Problem[] = [];
  const warnings = tools.flatMap(({ entry, index }) => {
    const { alternatives: _, ...policy } = policyOf(entry);
    try {
      const guarded = tool({ name: entry.id, policy: { effects: 'mutating', ...policy }, execute: () => undefined });
      const { warnings } = createSpillway({ tools: [guarded], ...(profile === undefined ? {} : { profile }) });
      // Those of a tool that has the defaults are nobody's decision.
      return (entry.timeout_ms ?? entry.retry_policy) === undefined ? [] : warnings;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push({ message: error.message, at: ['tools', index] });
      return [];
    }
  });
  return { problems, warnings };
};

const holdsOf = ({ turn, tools = [], servers = {} }: PlanFile): string =>
  `a turn of ${count(turn.nodes.length, 'node')}, ${count(tools.length, 'tool')} of its own, ` +
  count(Object.keys(servers).length, 'server');

const planReport = async (file: string): Promise<FileReport> => {
  const beside = (value: unknown): Problem[] => {
    const { error } = planFileSchema.safeParse(value);
    return error === undefined ? [] : problemsBeside(value, wordedProblems(error, value));
  };
  try {
    const { yaml, problems, file: plan } = await examinePlan(file, beside);
    const { servers, tools } = soundParts(yaml.value);
    const fromPolicies = checkPolicies(tools, plan?.profile);
    const fromServers = await checkServers(servers, path.dirname(path.resolve(file)));
    const said = new Set(problems.map(({ at }) => JSON.stringify(at.slice(0, 2))));
    // A policy that cannot be is named by its place where one is known.
    const others = [
      ...fromPolicies.problems.filter(({ at }) => !said.has(JSON.stringify(at))),
      ...fromServers.problems,
    ];
    const found = [...problems, ...others].map((problem) => ({
      ...yaml.positionOf(problem),
      at: placeName(problem),
      message: problem.message,
    }));
    const warnings = [...fromPolicies.warnings, ...fromServers.warnings];
    return { file, kind: 'plan', problems: found, warnings, ...(plan === undefined ? {} : { holds: holdsOf(plan) }) };
  } catch (error) {
    if (!(error instanceof PlanFileError)) throw error;
    return { file, kind: 'plan', problems: [{ message: error.message }], warnings: [] };
  }
};

const manifestReport = async (file: string, text: string, env: Environment): Promise<FileReport> => {
  const { examineManifest } = await import('../providers/rest/manifest.ts');
  const { manifest, problems, variables } = examineManifest(text);
  const unset = variables.filter((name) => (env[name] ?? '') === '');
  const warnings = unset.map((name) => `\${env:${name}} is not set in this environment`);
  return {
    file,
    kind: 'manifest',
    problems,
    warnings,
    ...(manifest === undefined ? {} : { holds: count(manifest.tools.length, 'tool') }),
  };
};

const reportOf = async (file: string, env: Environment): Promise<FileReport> => {
  const text = await readFile(file, 'utf8').catch(() => '');
  return isManifest(text) ? manifestReport(file, text, env) : planReport(file);
};

/** One line a finding, as compilers write them; then how many there are. */
const reportText = ({ file, problems, warnings, holds = '' }: FileReport): string => {
  const found = problems.map(({ line, column, at, message }) =>
    line === undefined ? message : `${file}:${line}:${column}: ${at}: ${message}`,
  );
  const warned = warnings.map((warning) => `${file}: warning: ${warning}`);
  const last = problems.length === 0 ? `${file}: fine: ${holds}` : `${file}: ${count(problems.length, 'problem')}`;
  return [...found.flatMap((text) => messageLines(text).split('\n')), ...[...warned, last].map(messageLine)]
    .map((line) => `${line}\n`)
    .join('');
};

/**
 * Runs `spillway check`: says all that is wrong with plans and manifests, and starts nothing.
 * @returns the exit code: 0 nothing is wrong, 2 something is
 * @throws UsageError
 */
export async function runCheck(args: readonly string[], { stdout, env }: CommandContext): Promise<number> {
  const command = parseCheck(args);
  if (command === undefined) {
    stdout.write(CHECK_HELP);
    return EXIT.fine;
  }
  let wrong = false;
  for (const file of command.paths) {
    const report = await reportOf(file, env);
    wrong ||= report.problems.length > 0;
    stdout.write(
      command.json
        ? ndjsonLine({
            file,
            kind: report.kind,
            ok: report.problems.length === 0,
            problems: report.problems,
            warnings: report.warnings,
          })
        : reportText(report),
    );
  }
  return wrong ? EXIT.refused : EXIT.fine;
}
