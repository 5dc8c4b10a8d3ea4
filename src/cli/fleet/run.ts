import type { TurnResult } from '../../contract/turn.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import { DurablePlanError } from '../../fleet/plan-record.ts';
import { UsageError } from '../arguments/usage.ts';
import type { RunCommand } from '../arguments/run.ts';
import { environment } from '../environment.ts';
import { loadPlan } from '../plan/file.ts';
import { Interrupted, type RunContext } from '../run.ts';
import { openEngine } from './engine.ts';
import { showTurn } from './show-turn.ts';

/**
 * Hands the turn of a plan file to a fleet, prints its id, and shows it until it settles. Interrupted, it leaves the
 * turn alone.
 *
 * @throws UsageError, PlanFileError or Interrupted
 */
export async function runElsewhere(command: RunCommand, context: RunContext): Promise<TurnResult> {
  const { stderr, runtime } = context;
  const { plan } = await loadPlan(command.planPath);
  const opened = await openEngine(command.engine === '' ? undefined : command.engine, environment);
  const { fleet } = opened;
  const turnId = command.turnId ?? runtime.id();
  try {
    const { traceparent } = command;
    const part = traceparent === undefined ? {} : { traceContext: { traceparent } };
    const { state } = await fleet.submit(turnId, plan, part);
    // For whoever wants to attach: the same on each line, and first of all.
    stderr.write(`turn ${turnId}${state === 'known' ? ' (submitted before)' : ''}\n`);
    const result = await showTurn(fleet.attach(turnId), command, context);
    if (result === undefined)
      throw new Interrupted(
        `interrupted; the turn goes on: spillway attach ${turnId} shows it, and cancels it with --cancel`,
      );
    return result;
  } catch (error) {
    if (isToolExecutionError(error) || error instanceof DurablePlanError || error instanceof RangeError)
      throw new UsageError(error.message, { cause: error });
    throw error;
  } finally {
    await opened.close();
  }
}
