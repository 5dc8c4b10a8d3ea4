import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import type { TurnEvent } from '../../contract/event.ts';
import type { TurnResult } from '../../contract/turn.ts';
import { redactorOf, type Redactor } from '../../policy/redact/values.ts';

const callShown = (clean: ToolResultEnvelope, { output }: ToolResultEnvelope): ToolResultEnvelope =>
  output === undefined ? clean : { ...clean, output };

/** What its nodes gave is what whoever asked for the turn wants to see. */
const turnShown = (clean: TurnResult, given: TurnResult, { text }: Redactor): TurnResult => ({
  ...clean,
  values: Object.fromEntries(Object.entries(given.values).map(([id, value]) => [text(id), value])),
  nodes: clean.nodes.map((node, index) => {
    const whole = given.nodes[index]?.result;
    return node.result === undefined || whole === undefined ? node : { ...node, result: callShown(node.result, whole) };
  }),
});

/**
 * Makes what a command shows of the events of its own turn, which it gets whole: no secrets, but the outputs,
 * as they are.
 *
 * @param secrets values that are never shown, beside what looks like one
 */
export function shownEvents(secrets: readonly string[] = []): (event: TurnEvent) => TurnEvent {
  const redactor = redactorOf({ secrets });
  return (event) => {
    const clean = redactor.show(event) as TurnEvent;
    if (event.type !== 'settled' || clean.type !== 'settled') return clean;
    if (event.source === 'call' && clean.source === 'call')
      return { ...clean, result: callShown(clean.result, event.result) };
    if (event.source === 'turn' && clean.source === 'turn')
      return { ...clean, result: turnShown(clean.result, event.result, redactor) };
    return clean;
  };
}
