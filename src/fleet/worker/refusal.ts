import * as z from 'zod';
import type { TraceEvent } from '../../contract/event.ts';
import type { JournalledNode } from '../../contract/fleet/journal.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { NodeResult } from '../../contract/turn.ts';
import { hasValue } from '../../policy/recovery/cascade.ts';
import type { Begun } from '../ledger.ts';

/** What of a plan of any format can be named. */
const namesSchema = z.object({ nodes: z.array(z.object({ id: z.string(), tool: z.string() })) });

/** The end of a turn that this fleet cannot finish: what was kept of it, and why there is no more. */
export function refusal(turnId: string, { record, nodes }: Begun, why: string, runtime: Runtime): TraceEvent {
  const names = namesSchema.safeParse(JSON.parse(record));
  const results = (names.success ? names.data.nodes : []).map(({ id, tool }): NodeResult => {
    const entry = nodes.get(id);
    if (entry === undefined) return { id, toolName: tool, state: 'canceled', reason: why };
    return (JSON.parse(entry) as JournalledNode).result;
  });
  const values = results.flatMap(({ id, state, result }): Array<[string, unknown]> =>
    hasValue(state) ? [[id, result?.output?.content]] : [],
  );
  return {
    seq: 0,
    atMs: runtime.now(),
    source: 'turn',
    turnId,
    type: 'settled',
    result: {
      status: values.length === 0 ? 'failed' : 'escalated',
      nodes: results,
      values: Object.fromEntries(values),
      executedTools: values.length,
      hadToolFailure: false,
      toolFailureKinds: [],
      summary: `The turn was refused: ${why}`,
    },
  };
}
