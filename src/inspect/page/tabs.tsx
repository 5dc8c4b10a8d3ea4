import type { JSX } from 'preact';
import type { ToolEvent, TraceEvent } from '../../contract/event.ts';
import type { ListView } from '../compare-view.ts';
import { lineOf } from '../text.ts';
import { Choice } from './choice.tsx';
import { asked, pictureOf } from './feed.ts';
import { model, nodeId, other, turn } from './state.ts';
import { Virtual } from './virtual.tsx';

/** A picture of the turn, in which nothing can act: its marbles, or its graph. */
const Picture = ({ share: name }: { readonly share: 'marbles' | 'graph' }): JSX.Element => {
  const told = turn.held;
  return (
    <div class="scroll" role="group" aria-label={name} tabIndex={0}>
      {!told?.number ? (
        <p class="quiet">Choose a turn.</p>
      ) : (
        <img alt={`The ${name} of turn ${told.turnId}: ${told.status}`} src={pictureOf(name, told)} />
      )}
    </div>
  );
};
export const Graph = (): JSX.Element => <Picture share="graph" />;
export const Marbles = (): JSX.Element => <Picture share="marbles" />;

/** What tells most comes first, ids last. */
const eventText = (event: TraceEvent): string => {
  const { seq, atMs, source, type, callId, turnId, nodeId, toolName, ...rest } = event as ToolEvent;
  return lineOf(JSON.stringify({ nodeId, toolName, ...rest, callId, turnId }), 600);
};

/** The last events as they came. */
export const Events = (): JSX.Element => {
  const told = turn.held;
  const shown = model.events.filter((event) => !told?.number || !('turnId' in event) || event.turnId === told.turnId);
  return (
    <Virtual
      label="Events"
      items={shown.toReversed()}
      height={22}
      keyOf={(event) => `${event.seq} ${event.type}`}
      row={(event) => (
        <div class="event">
          <span class="quiet">{((event.atMs - (told?.startMs ?? model.firstMs)) / 1_000).toFixed(3)} s</span>{' '}
          <b>{lineOf(event.type, 40)}</b> {eventText(event)}
        </div>
      )}
    />
  );
};

/** What the server says in words, item by item. */
const List = ({ share: name, label }: { readonly share: string; readonly label: string }): JSX.Element => {
  const text = asked(name, turn.held?.turnId ?? '');
  if (!text.startsWith('{')) return <p class="quiet">{text}</p>;
  const { others, chosen, about, nodes } = JSON.parse(text) as ListView;
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      {chosen === '' ? null : <Choice label="Compare with" box={other} value={chosen} options={others} />}
      {about.map((sentence) => (
        <p>{sentence}</p>
      ))}
      <ul>
        {nodes.map(([title, change, what]) => (
          <li class={change}>
            <b>{title}</b> {what}
          </li>
        ))}
      </ul>
    </div>
  );
};
/** This turn beside another one, node by node. */
export const Compare = (): JSX.Element => <List share={`compare-${other.held}`} label="Comparison" />;
/** What is probably not meant so. */
export const Lints = (): JSX.Element => <List share="lints" label="Lints" />;

/** Chooses another node with the arrow keys. */
export function step(by: number): void {
  const nodes = turn.held?.nodes ?? [];
  const at = nodes.findIndex((one) => one.nodeId === nodeId.held);
  const next = nodes[Math.min(nodes.length - 1, Math.max(0, at + by))];
  if (next !== undefined) nodeId.held = next.nodeId;
}
