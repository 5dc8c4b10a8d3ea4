import type { ToolInForce, TraceEvent } from '../../../contract/event.ts';
import { ReplayRefusal } from '../refusal.ts';

/**
 * The tools of a layer with those that calls and plans brought along, or a provider listed later: the first call of
 * each tells its policy. For a replay they are there from the start, since nothing is decided by that.
 * @throws ReplayRefusal where a name stands for two policies
 */
export function toolsIn(listed: readonly ToolInForce[], events: readonly TraceEvent[]): readonly ToolInForce[] {
  const tools = new Map(listed.map((tool) => [tool.name, tool]));
  for (const event of events) {
    if (event.type !== 'call_started' || event.tool === undefined) continue;
    const known = tools.get(event.tool.name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(event.tool))
      throw new ReplayRefusal(
        'unlisted',
        `event ${event.seq} is of ${JSON.stringify(known.name)} under another policy than a call before it: which ` +
          'calls were under which is not in the trace; give each of the tools a name of its own',
        event.seq,
      );
    tools.set(event.tool.name, event.tool);
  }
  return [...tools.values()];
}
