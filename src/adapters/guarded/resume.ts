import { failureText } from '../../policy/model-text.ts';
import type { FrameworkName, GuardedHarvest, HarvestedCall } from './harvest.ts';

/** A call of a conversation that nothing answers. */
export interface Unanswered {
  readonly id: string;
  readonly name: string;
  /** What became of it, where that was kept. */
  readonly kept: HarvestedCall | undefined;
}

/** How the messages of a framework are read and made. */
export interface Dialect<Message> {
  /** The calls that a message makes, in order. */
  callsOf(message: Message): readonly Pick<Unanswered, 'id' | 'name'>[];
  /** The ids of the calls that a message answers. */
  answeredBy(message: Message): readonly string[];
  /** What makes calls as the model would have. Without it, calls that no message makes are left out. */
  making?(calls: readonly HarvestedCall[]): readonly Message[];
  /**
   * What answers calls.
   * @param next what stands after the calls; what is given stands in its place
   */
  answering(unanswered: readonly Unanswered[], next: Message | undefined): readonly Message[];
}

/** What a model may read of a call that did not succeed. One that was not kept, or runs still, may have run. */
export const failureOf = (kept: HarvestedCall | undefined): string | undefined =>
  kept?.state === 'succeeded' ? undefined : (kept?.failure?.message ?? failureText('canceled', 'may_have_run'));

/** The calls that no message answers, by the index of the message that makes them. */
const unansweredOf = <Message>(
  dialect: Dialect<Message>,
  messages: readonly Message[],
  keptOf: (id: string) => HarvestedCall | undefined,
): Map<number, Unanswered[]> => {
  const open = new Map<string, { readonly index: number; readonly call: Unanswered }>();
  messages.forEach((message, index) => {
    for (const { id, name } of dialect.callsOf(message)) open.set(id, { index, call: { id, name, kept: keptOf(id) } });
    for (const id of dialect.answeredBy(message)) open.delete(id);
  });
  const byIndex = new Map<number, Unanswered[]>();
  for (const { index, call } of open.values()) byIndex.set(index, [...(byIndex.get(index) ?? []), call]);
  return byIndex;
};

/** The calls that no message makes, as if a message for each step had made them, each answered. */
const leftOver = <Message>(dialect: Dialect<Message>, calls: readonly HarvestedCall[]): Message[] => {
  const steps = Map.groupBy(calls, ({ step }) => step);
  return [...steps.values()].flatMap((step) => {
    const unanswered = step.map((kept) => ({ id: kept.toolCallId ?? '', name: kept.toolName, kept }));
    return [...(dialect.making?.(step) ?? []), ...dialect.answering(unanswered, undefined)];
  });
};

/**
 * A conversation in which each call is answered: with what it gave, with what a model may read of its failure, or,
 * where nothing is known of it, with a sentence that says so. Kept calls that no message makes come last. Nothing
 * changes where all is answered.
 *
 * @param messages the conversation; it may stop anywhere
 */
export function resume<Message>(
  dialect: Dialect<Message>,
  framework: FrameworkName,
  harvest: GuardedHarvest,
  messages: readonly Message[],
): Message[] {
  const calls = harvest.calls.filter((call) => call.framework === framework && call.toolCallId !== undefined);
  // Of two calls with one id the later one is the open one.
  const byId = new Map(calls.map((call) => [call.toolCallId, call]));
  const unanswered = unansweredOf(dialect, messages, (id) => byId.get(id));
  const resumed: Message[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message === undefined) break;
    resumed.push(message);
    const open = unanswered.get(index);
    if (open === undefined) continue;
    const next = messages[index + 1];
    // What stands next may make calls itself, and is then looked at in its own turn.
    const takesNext = next !== undefined && dialect.callsOf(next).length === 0;
    resumed.push(...dialect.answering(open, takesNext ? next : undefined));
    if (takesNext) index++;
  }
  if (dialect.making === undefined) return resumed;
  const made = new Set(messages.flatMap((message) => dialect.callsOf(message).map(({ id }) => id)));
  return [
    ...resumed,
    ...leftOver(
      dialect,
      calls.filter(({ toolCallId = '' }) => !made.has(toolCallId)),
    ),
  ];
}
