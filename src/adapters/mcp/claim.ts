import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { read } from '../../errors/structure.ts';
import { correctable } from '../../policy/advice.ts';
import { confirmed, isClaim, unconfirmed } from '../../policy/recovery/refusal.ts';
import { readList } from './list.ts';
import { schemaMismatch } from '../guarded/schema-mismatch.ts';

/** A tool as the server lists it, `null` where it lists none of the name, `undefined` where the list cannot be had. */
const listed = async (client: object, name: string, signal: AbortSignal): Promise<unknown> => {
  let tool: unknown;
  const toTheEnd = await readList(client, signal, (tools) => {
    tool = tools.find((each) => read(each, 'name') === name);
    return tool !== undefined;
  });
  return toTheEnd ? null : tool;
};

/**
 * What a call failed with, where the server may only say that it was turned away: the server's list of tools decides. A
 * tool that it does not list did not run, nor did one whose listed schema the input does not fit, and what does not fit
 * is said in words of ours. Any other may have run.
 */
export async function judged(
  failed: ToolExecutionError,
  client: object,
  name: string,
  input: unknown,
  signal: AbortSignal,
): Promise<ToolExecutionError> {
  if (!isClaim(failed)) return failed;
  const tool = await listed(client, name, signal).catch(() => undefined);
  if (tool === null) return confirmed(failed);
  const isAboutInput = failed.kind === 'invalid_parameters';
  const mismatch = isAboutInput ? await schemaMismatch(read(tool, 'inputSchema'), input ?? {}) : undefined;
  return mismatch === undefined ? unconfirmed(failed) : confirmed(failed, correctable(mismatch));
}
