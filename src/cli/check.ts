import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { planFileSchema, type PlanFile } from '../contract/formats/plan-file.ts';
import { readYaml, type Problem } from '../formats/yaml.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { CHECK_HELP, parseCheck } from './arguments/check.ts';
import { EXIT, type CommandContext } from './context.ts';
import type { Environment } from './environment.ts';
import { isManifest, kindOf } from './plan/file-kind.ts';
import { count, type FileReport } from './plan/file-report.ts';
import { problemsBeside, soundParts } from './plan/lenient.ts';
import { checkServers } from './plan/machine.ts';
import { PlanFileError, examinePlan, placeName } from './plan/file.ts';
import { policyReport, proxyReport, scenarioReport, type ReadFile } from './plan/other-files.ts';
import { checkPolicies } from './plan/policies.ts';
import { messageLine, messageLines } from './show/text.ts';
import { policyOf } from './plan/tools.ts';
import { wordedProblems } from './show/wording.ts';

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
    const placed = tools.map(({ entry, index }) => ({ name: entry.id, policy: policyOf(entry), at: ['tools', index] }));
    const fromPolicies = checkPolicies(placed, plan?.profile);
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

const OTHERS = {
  plan: ({ file }: ReadFile) => planReport(file),
  proxy: proxyReport,
  policy: policyReport,
  scenario: scenarioReport,
} as const;

const reportOf = async (file: string, env: Environment): Promise<FileReport> => {
  const text = await readFile(file, 'utf8').catch(() => '');
  if (isManifest(text)) return manifestReport(file, text, env);
  const yaml = readYaml(text, { name: 'file' });
  const kind = yaml.problems.length > 0 ? 'plan' : kindOf(yaml.value);
  return OTHERS[kind]({ file, yaml });
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
 * Runs `spillway check`: says all that is wrong with files that commands read, and starts nothing.
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
