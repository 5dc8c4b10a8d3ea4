import type { JSX } from 'preact';
import type { TurnTold } from '../model.ts';
import { duration } from '../text.ts';
import { FILTERS, filter, nodeId, nowMs, shownTurns, turn, turnId, words } from './state.ts';
import { Virtual } from './virtual.tsx';

const HEIGHT = 46;
const WELL = new Set<string | undefined>(['succeeded', 'defaulted']);

const Row = ({ told }: { readonly told: TurnTold }): JSX.Element => {
  const { status, nodes, number, startMs, settledMs, timeoutMs } = told;
  const isLoose = number === 0;
  const kept = nodes.filter(({ state }) => WELL.has(state)).length;
  const retries = nodes.reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0);
  const running = settledMs === undefined && !isLoose;
  const took = settledMs === undefined ? Math.max(0, nowMs.value - startMs) : settledMs - startMs;
  return (
    <button
      type="button"
      class="turn"
      aria-pressed={turn.value === told}
      onClick={() => {
        turnId.value = told.turnId;
        nodeId.value = undefined;
      }}
    >
      <b>{isLoose ? 'Calls outside of turns' : `${number}. `}</b>
      {isLoose ? null : <span class={`s-${status}`}>{status}</span>}
      <span class="quiet">
        {isLoose ? `${nodes.length} calls` : duration(running ? Math.min(took, timeoutMs) : took)}
        {isLoose ? '' : `, ${kept} of ${nodes.length + told.moreNodes} kept`}
        {retries > 0 ? `, ${retries} retries` : ''}
        {told.tenant === undefined ? '' : `, ${told.tenant}`}
      </span>
    </button>
  );
};

/** The turns, newest first, as far as the filters let them through. */
export const TurnList = (): JSX.Element => {
  const shown = shownTurns.value.toReversed();
  return (
    <nav class="turns" aria-label="Turns">
      <div class="filters">
        {FILTERS.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={filter.value === name}
            onClick={() => {
              filter.value = name;
            }}
          >
            {name}
          </button>
        ))}
        <input
          type="search"
          aria-label="Filter by tool, node, tenant or turn id"
          placeholder="tool, node, tenant, id"
          value={words.value}
          onInput={({ currentTarget }) => {
            words.value = currentTarget.value;
          }}
        />
      </div>
      <Virtual
        label="Turns"
        items={shown}
        height={HEIGHT}
        keyOf={(told) => told.turnId}
        row={(told) => <Row told={told} />}
      />
      {shown.length === 0 ? <p class="quiet">No turn yet, or none that passes the filter.</p> : null}
    </nav>
  );
};
