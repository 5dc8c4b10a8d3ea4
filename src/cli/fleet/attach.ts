import { isToolExecutionError } from '../../contract/tool-error.ts';
import { ATTACH_HELP, parseAttach } from '../arguments/fleet.ts';
import { UsageError } from '../arguments/usage.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { openEngine } from './engine.ts';
import { showTurn } from './show-turn.ts';

/**
 * Runs `spillway attach`: shows a turn of a fleet.
 * @returns the exit code
 * @throws UsageError
 */
export async function runAttach(args: readonly string[], context: CommandContext): Promise<number> {
  const command = parseAttach(args);
  if (command === undefined) {
    context.stdout.write(ATTACH_HELP);
    return EXIT.fine;
  }
  const opened = await openEngine(command.engine, context.env);
  const { fleet } = opened;
  try {
    if (command.cancel) await fleet.cancel(command.turnId);
    const result = await showTurn(fleet.attach(command.turnId), command, context);
    if (result === undefined) return EXIT.fine;
    return result.status === 'completed' || result.status === 'partial' ? EXIT.fine : EXIT.failed;
  } catch (error) {
    if (isToolExecutionError(error) || error instanceof RangeError)
      throw new UsageError(error.message, { cause: error });
    throw error;
  } finally {
    await opened.close();
  }
}
