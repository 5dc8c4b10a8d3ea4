import { open } from 'node:fs/promises';
import path from 'node:path';
import { planFileSchema, type PlanFile } from '../../contract/formats/plan-file.ts';
import { readYaml, type Path, type Problem, type YamlFile } from '../../formats/yaml.ts';
import type { Plan } from '../../contract/turn.ts';
import { builtPlan } from './rules.ts';
import { messageLine, shownName } from '../show/text.ts';
import { wordedProblems } from '../show/wording.ts';

/** A plan of 10,000 nodes fits; what yaml makes of a hostile megabyte takes seconds, not minutes. */
const BYTES_MAX = 1_048_576;
const PROBLEMS_SHOWN = 10;

/** A plan file that cannot run. Nothing has been called. */
export class PlanFileError extends Error {
  override readonly name: string = 'PlanFileError';
}

/** A plan file, read and checked as far as that goes without its servers. */
export interface LoadedPlan {
  readonly file: PlanFile;
  /** The folder of the file, absolute. */
  readonly folder: string;
  readonly plan: Plan;
  /** The error for what turns out to be wrong later, with its place in the file. */
  readonly refuse: (problems: readonly Problem[]) => PlanFileError;
}

const dotted = (at: Path): string =>
  at.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? shownName(step) : `${text}.${shownName(step)}`,
    '',
  );

/** What a problem is about, in words: `turn.nodes[1].needs`. */
export const placeName = ({ at }: Problem): string => (at.length === 0 ? 'the plan' : dotted(at));

/** One line a problem: `plan.yaml:12:5: turn.nodes[1].needs: rule, value, remedy`. */
export const refusal = (planPath: string, yaml: YamlFile, problems: readonly Problem[]): PlanFileError => {
  const lines = problems.slice(0, PROBLEMS_SHOWN).map((problem) => {
    const { line, column } = yaml.positionOf(problem);
    return messageLine(`${planPath}:${line}:${column}: ${placeName(problem)}: ${problem.message}`);
  });
  if (problems.length > PROBLEMS_SHOWN) lines.push(`... and ${problems.length - PROBLEMS_SHOWN} more`);
  return new PlanFileError(lines.join('\n'));
};

/** Why a file cannot be read, in words. */
export const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'is a folder; name the plan file in it',
  EACCES: 'may not be read; look at its permissions',
};

const readBytes = async (planPath: string): Promise<Uint8Array> => {
  try {
    await using file = await open(planPath, 'r');
    const bytes = Buffer.alloc(BYTES_MAX + 1);
    let length = 0;
    // A pipe gives its content in pieces.
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      length += bytesRead;
      if (bytesRead === 0 || length === bytes.length) return bytes.subarray(0, length);
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new PlanFileError(`${planPath}: ${REASONS[code] ?? `cannot be read (${code})`}`, { cause: error });
  }
};

export const readText = async (planPath: string): Promise<string> => {
  const bytes = await readBytes(planPath);
  if (bytes.length > BYTES_MAX)
    throw new PlanFileError(
      `${planPath}: is larger than ${BYTES_MAX} bytes, the most that a plan may have; split it into several turns`,
    );
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new PlanFileError(`${planPath}: is not UTF-8 text; save it as UTF-8`);
  }
  // YAML allows no control characters but tab and line breaks.
  const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.exec(text);
  if (control !== null) {
    const before = text.slice(0, control.index).split('\n');
    throw new PlanFileError(
      `${planPath}:${before.length}:${(before.at(-1) ?? '').length + 1}: holds the control character ` +
        `${JSON.stringify(control[0])}, so it is no YAML text; name a plan file`,
    );
  }
  return text;
};

/** A plan file, as far as it could be read. */
export interface ExaminedPlan {
  /** Absent where it cannot run. */
  readonly loaded?: LoadedPlan;
  readonly problems: readonly Problem[];
  readonly yaml: YamlFile;
  /** As far as there is one. */
  readonly file?: PlanFile;
}

/**
 * Reads a plan file, and finds all that is wrong with it without its servers.
 * @param more what else to look for where the schema is not met
 * @throws PlanFileError when it cannot be read at all
 */
export async function examinePlan(
  planPath: string,
  more: (value: unknown) => readonly Problem[] = () => [],
): Promise<ExaminedPlan> {
  const yaml = readYaml(await readText(planPath), { name: 'plan' });
  const refuse = (problems: readonly Problem[]): PlanFileError => refusal(planPath, yaml, problems);
  if (yaml.problems.length > 0) return { yaml, problems: yaml.problems };
  if (yaml.value === null || yaml.value === undefined)
    return { yaml, problems: [{ message: 'is empty; it needs at least turn: with nodes:', at: [] }] };
  const parsed = planFileSchema.safeParse(yaml.value);
  if (!parsed.success) return { yaml, problems: [...wordedProblems(parsed.error, yaml.value), ...more(yaml.value)] };
  const file = parsed.data;
  const { plan, problems } = builtPlan(file);
  if (plan === undefined || problems.length > 0) return { yaml, file, problems };
  return { yaml, file, problems, loaded: { file, folder: path.dirname(path.resolve(planPath)), plan, refuse } };
}

/**
 * Reads a plan file and checks all that can be checked before its servers run.
 * @throws PlanFileError that names each place and rule
 */
export async function loadPlan(planPath: string): Promise<LoadedPlan> {
  const { loaded, problems, yaml } = await examinePlan(planPath);
  if (loaded === undefined) throw refusal(planPath, yaml, problems);
  return loaded;
}
