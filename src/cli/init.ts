import { open, readFile, stat, unlink } from 'node:fs/promises';
import { Document } from 'yaml';
import type { ServerEntry } from '../contract/formats/server-entry.ts';
import { EXIT, type CommandContext } from './context.ts';
import { INIT_HELP, USUAL_SOURCES, parseInit, type InitCommand } from './arguments/init.ts';
import { readMcpJson, type FoundServers } from './plan/mcp-json.ts';
import { messageLine } from './show/text.ts';
import { FileError } from './arguments/usage.ts';

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

const isThere = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
};

const sourceOf = async ({ source }: InitCommand): Promise<string> => {
  if (source !== undefined) return source;
  for (const usual of USUAL_SOURCES) if (await isThere(usual)) return usual;
  throw new FileError(`there is none of ${USUAL_SOURCES.join(', ')} here; write spillway init MCP.json`);
};

const HEAD = (
  source: string,
): string => ` yaml-language-server: $schema=node_modules/spillway/dist/schemas/plan.schema.json

 Servers taken over from ${source}. What to do next:
   spillway tools plan.yaml     says what tools they have; put one into the node below
   spillway check plan.yaml     says what is wrong, and starts nothing
   spillway run plan.yaml       runs it`;

const SECRETS = ' env and headers are as they were and may be secrets: keep this file out of version control.';
const TOOLS = ` A tool with a policy of its own, for example:
   - { id: search, server: SERVER, tool: TOOL, timeout_ms: 5000, retry_policy: { max_attempts: 3 }, effects: read }`;

/** A comment of YAML for each line that is none. */
const commented = (lines: readonly string[]): string => lines.map((line) => ` ${messageLine(line)}`).join('\n');

const hasSecrets = ({ env, headers }: ServerEntry): boolean => (env ?? headers) !== undefined;

/** The plan, with what a person has to know in comments. */
const planText = (source: string, { servers, leftOut }: FoundServers): string => {
  const [first = ''] = Object.keys(servers);
  const document = new Document({
    servers,
    tools: [],
    turn: { timeout_ms: 60_000, nodes: [{ id: 'first', tool: `${first}.TOOL`, input: {} }] },
  });
  document.commentBefore = HEAD(messageLine(source));
  const comments = new Map([
    [
      'servers',
      [
        ...(Object.values(servers).some(hasSecrets) ? [SECRETS] : []),
        ...(leftOut.length === 0 ? [] : [` Not as it was:\n${commented(leftOut)}`]),
      ].join('\n'),
    ],
    ['tools', TOOLS],
    ['turn', ' One call. Others may need it, and refer to its value as ${first}.'],
  ]);
  const { contents } = document;
  for (const pair of (
    contents as unknown as {
      readonly items: ReadonlyArray<{ readonly key: { value: string; commentBefore?: string; spaceBefore?: boolean } }>;
    }
  ).items) {
    pair.key.spaceBefore = pair.key.value !== 'servers';
    const comment = comments.get(pair.key.value);
    if (comment !== undefined && comment !== '') pair.key.commentBefore = comment;
  }
  return document.toString({ lineWidth: 0 });
};

/** Writes a file that was not there before. */
const writeNew = async (path: string, text: string): Promise<void> => {
  let file;
  try {
    // Made by nobody else, and readable by nobody else.
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new FileError(`${path} is there already, and is not overwritten; give another name by --out`, {
        cause: error,
      });
    throw new FileError(`${path} cannot be written (${codeOf(error)}); name a file in a folder that exists`, {
      cause: error,
    });
  }
  try {
    await file.writeFile(text);
    await file.close();
  } catch (error) {
    await file.close().catch(() => undefined);
    await unlink(path).catch(() => undefined);
    throw new FileError(`${path} cannot be written (${codeOf(error)})`, { cause: error });
  }
};

/**
 * Runs `spillway init`: writes a plan with the servers of an mcp.json. Starts nothing and prints no value of env or
 * headers.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runInit(args: readonly string[], { stdout, stderr }: CommandContext): Promise<number> {
  const command = parseInit(args);
  if (command === undefined) {
    stdout.write(INIT_HELP);
    return EXIT.fine;
  }
  const source = await sourceOf(command);
  const text = await readFile(source, 'utf8').catch((error: unknown) => {
    throw new FileError(`${source}: cannot be read (${codeOf(error)})`, { cause: error });
  });
  const found = readMcpJson(text);
  if (typeof found === 'string') throw new FileError(`${source}:${found}`);
  await writeNew(command.out, planText(source, found));
  const names = Object.keys(found.servers);
  const servers = `${names.length === 1 ? 'the server' : 'the servers'} ${names.join(', ')}`;
  stdout.write(`${messageLine(`${command.out}: written, with ${servers} of ${source}`)}\n`);
  for (const line of found.leftOut) stderr.write(`${messageLine(`note: ${line}`)}\n`);
  if (Object.values(found.servers).some(hasSecrets))
    stderr.write(
      'note: values of env and headers were copied and may be secrets; keep the plan out of version control\n',
    );
  return EXIT.fine;
}
