import { open } from 'node:fs/promises';
import path from 'node:path';
import { planFileSchema, type NodeEntry, type PlanFile } from '../contract/plan-file.ts';
import type { BreakerEntry } from '../contract/policy-entry.ts';
import type { PlanNode } from '../contract/turn.ts';
import { readYaml, type Path, type Problem, type YamlFile } from '../formats/yaml.ts';
import { breakerSettings } from '../policy/breaker-settings.ts';
import { breakerOf } from '../policy/policy-entry.ts';
import { PlanError, plan, type Plan } from '../turn/plan.ts';
import { inputTemplate, type InputTemplate } from './references.ts';
import { choices, messageLine, shownName } from './text.ts';
import { wordedProblems } from './wording.ts';

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

const dotted = (at: Path): string => at.reduce<string>((text, step) => (typeof step === 'number' ? `${text}[${step}]` : text === '' ? shownName(step) : `${text}.${shownName(step)}`), '');

/** One line a problem: `plan.yaml:12:5: turn.nodes[1].needs: rule, value, remedy`. */
const refusal = (planPath: string, yaml: YamlFile, problems: readonly Problem[]): PlanFileError => {
  const lines = problems.slice(0, PROBLEMS_SHOWN).map((problem) => {
    const { line, column } = yaml.positionOf(problem);
    return messageLine(`${planPath}:${line}:${column}: ${problem.at.length === 0 ? 'the plan' : dotted(problem.at)}: ${problem.message}`);
  });
  if (problems.length > PROBLEMS_SHOWN) lines.push(`... and ${problems.length - PROBLEMS_SHOWN} more`);
  return new PlanFileError(lines.join('\n'));
};

const REASONS: Readonly<Record<string, string>> = {
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

const readText = async (planPath: string): Promise<string> => {
  const bytes = await readBytes(planPath);
  if (bytes.length > BYTES_MAX) throw new PlanFileError(`${planPath}: is larger than ${BYTES_MAX} bytes, the most that a plan may have; split it into several turns`);
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
    throw new PlanFileError(`${planPath}:${before.length}:${(before.at(-1) ?? '').length + 1}: holds the control character ${JSON.stringify(control[0])}, so it is no YAML text; name a plan file`);
  }
  return text;
};

/** What options of a breaker must be to each other, in the file's spelling. */
const breakerProblem = (entry: BreakerEntry): string | undefined => {
  try {
    breakerSettings(breakerOf(entry));
    return undefined;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return error.message.replaceAll(/[a-z]+[A-Z]\w*/g, (word) => word.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  }
};

/** What the schema cannot say: names that must exist, and be there once. */
const checkNames = ({ servers = {}, tools = [], turn }: PlanFile): Problem[] => {
  const problems: Problem[] = [];
  const serverNames = Object.keys(servers);
  const toolIds = new Set(tools.map(({ id }) => id));
  const checkTool = (id: string, at: Path): void => {
    if (toolIds.has(id)) return;
    const [server, ...rest] = id.split('.');
    if (rest.length > 0 && server !== undefined && Object.hasOwn(servers, server)) return;
    problems.push({ message: `there is no tool ${id}; ${choices(id, [...toolIds])} (or <server>.<tool>, with a server of ${serverNames.join(', ') || 'this file: it has none'})`, at });
  };
  const firstAt = new Map<string, number>();
  tools.forEach(({ id, server, alternatives = [], circuit_breaker = false }, index) => {
    const breaker = circuit_breaker === false ? undefined : breakerProblem(circuit_breaker);
    if (breaker !== undefined) problems.push({ message: breaker, at: ['tools', index, 'circuit_breaker'] });
    const first = firstAt.get(id);
    if (first !== undefined) problems.push({ message: `tools[${first}] has the id ${id} already; give one of them another`, at: ['tools', index, 'id'] });
    else firstAt.set(id, index);
    if (!Object.hasOwn(servers, server)) problems.push({ message: `there is no server ${server}; ${choices(server, serverNames)}`, at: ['tools', index, 'server'] });
    alternatives.forEach((alternative, place) => {
      const at = ['tools', index, 'alternatives', place];
      if (alternative === id) problems.push({ message: `${id} cannot be its own alternative; name another tool`, at });
      else checkTool(alternative, at);
    });
  });
  turn.nodes.forEach(({ tool }, index) => checkTool(tool, ['turn', 'nodes', index, 'tool']));
  return problems;
};

const checkReferences = (nodes: readonly NodeEntry[], templates: readonly InputTemplate[]): Problem[] => {
  const ids = new Set(nodes.map(({ id }) => id));
  return nodes.flatMap(({ id, needs = [] }, index) => {
    const input: Path = ['turn', 'nodes', index, 'input'];
    const { references, problems } = templates[index] ?? inputTemplate(undefined);
    const unmet = references.filter(({ reference }) => !needs.includes(reference.node));
    return [
      ...problems.map(({ message, at }) => ({ message, at: [...input, ...at] })),
      ...unmet.map(({ reference: { node, text }, at }) => {
        const remedy = node === id ? 'a node cannot refer to itself' : ids.has(node) ? `add ${node} to the needs of ${id}` : `there is no node ${node}; ${choices(node, [...ids])} Write $\${ for a plain \${`;
        return { message: `${text} refers to what ${id} does not need: ${remedy}`, at: [...input, ...at] };
      }),
    ];
  });
};

const planNode = ({ id, tool, needs, optional, ...entry }: NodeEntry, { references, fill }: InputTemplate): PlanNode => ({
  id,
  tool,
  // Without an input, a tool is called with no arguments, which over MCP is an empty mapping.
  input: references.length === 0 ? (fill({}) ?? {}) : (values: Readonly<Record<string, unknown>>) => fill(values),
  ...(needs === undefined ? {} : { needs }),
  ...(optional === undefined ? {} : { optional }),
  ...('default' in entry ? { default: entry.default } : {}),
});

/** Where a plan's rule was broken: at the node, and there at what the rule is about. */
const placeOf = ({ rule, nodes: [first, second] }: PlanError, nodes: readonly NodeEntry[]): Path => {
  const at = (index: number, key: 'id' | 'needs' | 'default', other?: string): Path => {
    const place = other === undefined ? -1 : (nodes[index]?.needs ?? []).indexOf(other);
    return ['turn', 'nodes', index, key, ...(place === -1 ? [] : [place])];
  };
  if (rule === 'duplicate_id') return at(nodes.findLastIndex(({ id }) => id === first), 'id');
  const index = nodes.findIndex(({ id }) => id === first);
  if (rule === 'default_without_needs') return at(index, 'default');
  return index === -1 ? ['turn', 'nodes'] : at(index, 'needs', second ?? first);
};

const buildPlan = ({ nodes, timeout_ms, on_deadline, concurrency }: PlanFile['turn'], templates: readonly InputTemplate[]): Plan | Problem => {
  try {
    return plan.from(
      nodes.map((node, index) => planNode(node, templates[index] ?? inputTemplate(undefined))),
      {
        ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
        ...(on_deadline === undefined ? {} : { onDeadline: on_deadline }),
        ...(concurrency === undefined ? {} : { concurrency }),
      },
    );
  } catch (error) {
    if (error instanceof PlanError) return { message: error.message, at: placeOf(error, nodes) };
    throw error;
  }
};

/**
 * Reads a plan file and checks all that can be checked before its servers run.
 * @throws PlanFileError that names each place and rule
 */
export async function loadPlan(planPath: string): Promise<LoadedPlan> {
  const yaml = readYaml(await readText(planPath), { name: 'plan' });
  const refuse = (problems: readonly Problem[]): PlanFileError => refusal(planPath, yaml, problems);
  if (yaml.problems.length > 0) throw refuse(yaml.problems);
  if (yaml.value === null || yaml.value === undefined) throw refuse([{ message: 'is empty; it needs at least turn: with nodes:', at: [] }]);
  const parsed = planFileSchema.safeParse(yaml.value);
  if (!parsed.success) throw refuse(wordedProblems(parsed.error, yaml.value));
  const file = parsed.data;
  const templates = file.turn.nodes.map(({ input }) => inputTemplate(input));
  const problems = [...checkNames(file), ...checkReferences(file.turn.nodes, templates)];
  const built = buildPlan(file.turn, templates);
  // A rule of the plan is named first: it may be what made a reference wrong.
  if ('message' in built) problems.unshift(built);
  if ('message' in built || problems.length > 0) throw refuse(problems);
  return { file, folder: path.dirname(path.resolve(planPath)), plan: built, refuse };
}
