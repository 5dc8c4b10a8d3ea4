import type { JSX } from 'preact';
import type { TraceEvent } from '../../contract/event.ts';
import type { TurnComparison } from '../compare.ts';
import type { Lint } from '../lints.ts';
import { duration, lineOf } from '../text.ts';
import { asked, pictureOf } from './feed.ts';
import { model, nodeId, otherId, turn, turns } from './state.ts';
import { Virtual } from './virtual.tsx';

/** A picture of the turn, in which nothing can act: its marbles, or its graph. */
const Picture = ({ share: name }: { readonly share: 'marbles' | 'graph' }): JSX.Element => {
  const told = turn.value;
  return (
    <div class="scroll" role="group" aria-label={name} tabIndex={0}>
      {told === undefined || told.number === 0 ? (
        <p class="quiet">It is drawn of a turn.</p>
      ) : (
        <img alt={`The ${name} of turn ${told.turnId}: ${told.status}`} src={pictureOf(name, told)} />
      )}
    </div>
  );
};
export const Graph = (): JSX.Element => <Picture share="graph" />;
export const Marbles = (): JSX.Element => <Picture share="marbles" />;

const eventText = (event: TraceEvent): string => {
  const { seq, atMs, source, type, ...rest } = event;
  return lineOf(JSON.stringify(rest), 600);
};

/** The last events as they came. */
export const Events = (): JSX.Element => {
  const told = turn.value;
  const shown = model.events.filter(
    (event) => told === undefined || told.number === 0 || !('turnId' in event) || event.turnId === told.turnId,
  );
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

const pair = <T,>([a, b]: readonly [T, T], text: (value: T) => string): string =>
  a === b ? text(a) : `${text(a)} → ${text(b)}`;
const orNone = (value: string | number | undefined): string => String(value ?? 'none').replaceAll('_', ' ');
const COMPARED_MAX = 60;

/** This turn beside another one, node by node. */
export const Compare = (): JSX.Element => {
  const told = turn.value;
  const others = turns.value.filter((one) => one !== told && one.number > 0).slice(-50);
  const other = others.find((one) => one.turnId === otherId.value) ?? others.at(-1);
  if (told === undefined || other === undefined) return <p class="quiet">There is no other turn to compare with.</p>;
  const text = asked(`compare-${other.turnId}`, told.turnId);
  if (!text.startsWith('{')) return <p class="quiet">{text}</p>;
  const { nodes, flipped, status, durationMs, attempts } = JSON.parse(text) as TurnComparison;
  return (
    <div class="scroll" role="group" aria-label="Comparison" tabIndex={0}>
      <label>
        Compare with{' '}
        <select
          value={other.turnId}
          onChange={({ currentTarget }) => {
            otherId.value = currentTarget.value;
          }}
        >
          {others.map((one) => (
            <option key={one.turnId} value={one.turnId}>{`${one.number}. ${one.status}`}</option>
          ))}
        </select>
      </label>
      <p>{`${pair(status, orNone)}; ${pair(durationMs, duration)}; ${pair(attempts, String)} attempts; ${flipped} decisions fell otherwise`}</p>
      <ul>
        {nodes
          .toSorted((a, b) => Number(a.change === 'same') - Number(b.change === 'same'))
          .slice(0, COMPARED_MAX)
          .map((one) => (
            <li key={one.nodeId} class={one.change}>
              <b>{one.nodeId}</b>{' '}
              {`${pair(one.state, orNone)}; ${pair(one.attempts, orNone)} attempts; ${pair(one.durationMs, orNone)} ms`}
              {one.flipped.map(({ try: number, told }) => `; #${number} ${pair(told, orNone)}`)}
            </li>
          ))}
      </ul>
    </div>
  );
};

/** What is probably not meant so, in words. */
export const Lints = (): JSX.Element => {
  const text = asked('lints', turn.value?.turnId ?? '');
  const found = text.startsWith('[') ? (JSON.parse(text) as readonly Lint[]) : [];
  return (
    <div class="scroll" role="group" aria-label="Lints" tabIndex={0}>
      {found.length === 0 ? <p class="quiet">{text === '[]' ? 'Nothing was noticed.' : text}</p> : null}
      <ul>
        {found.map(({ finding, evidence, remedy, name }) => (
          <li key={`${name} ${finding}`}>
            <b>{finding}</b> {evidence} <em>{remedy}</em>
          </li>
        ))}
      </ul>
    </div>
  );
};

/** Chooses another node with the arrow keys. */
export function step(by: number): void {
  const nodes = turn.value?.nodes ?? [];
  const at = nodes.findIndex((one) => one.nodeId === nodeId.value);
  const next = nodes[Math.min(nodes.length - 1, Math.max(0, at + by))];
  if (next !== undefined) nodeId.value = next.nodeId;
}
