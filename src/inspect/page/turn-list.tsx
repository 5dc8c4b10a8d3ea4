import type { JSX } from 'preact';
import type { TurnTold } from '../model.ts';
import { duration } from '../text.ts';
import {
  PASSES,
  filter,
  isWell,
  movingMs,
  nodeId,
  other,
  shownTurns,
  tenant,
  tenants,
  turn,
  turnId,
  words,
  type Filter,
} from './state.ts';
import { Choice } from './choice.tsx';
import { Virtual } from './virtual.tsx';

const HEIGHT = 46;

const Row = ({ told }: { readonly told: TurnTold }): JSX.Element => {
  const { status, nodes, number, startMs, settledMs } = told;
  const isLoose = number === 0;
  const kept = nodes.filter(({ state }) => isWell(state)).length;
  const retries = nodes.reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0);
  return (
    <button
      type="button"
      class="turn"
      aria-pressed={turn.held === told}
      onClick={() => {
        turnId.held = told.turnId;
        nodeId.held = undefined;
        other.held = '';
      }}
    >
      <b>{isLoose ? 'Other calls' : `${number}. `}</b>
      {isLoose ? null : (
        <>
          <span class={`s-${status}`}>{status}</span> {duration(Math.max(0, (settledMs ?? movingMs()) - startMs))}
        </>
      )}
      <span class="quiet">
        {isLoose ? `${nodes.length} calls` : `${kept} of ${nodes.length + told.moreNodes} kept`}
        {retries > 0 ? `, ${retries} retries` : ''}
        {told.tenant === undefined ? '' : `, ${told.tenant}`}
      </span>
    </button>
  );
};

/** The turns, newest first, as far as the filters let them through. */
export const TurnList = (): JSX.Element => {
  const shown = shownTurns.held.toReversed();
  return (
    <nav class="turns" aria-label="Turns">
      <div class="filters">
        <Choice label="Filter" box={filter} options={Object.keys(PASSES).map((name) => [name as Filter, name])} />
        <input
          type="search"
          aria-label="tool, node, turn id"
          placeholder="tool, node, turn id"
          value={words.held}
          onInput={({ currentTarget }) => {
            words.held = currentTarget.value;
          }}
        />
        {tenants.held.size > 0 ? (
          <Choice
            label="Tenant"
            box={tenant}
            options={[['', 'all tenants'], ...[...tenants.held].map((name) => [name, name] as const)]}
          />
        ) : null}
      </div>
      <Virtual
        label="Turns"
        items={shown}
        height={HEIGHT}
        keyOf={(told) => told.turnId}
        row={(told) => <Row told={told} />}
      />
      {shown.length === 0 ? <p class="quiet">No turn passes.</p> : null}
    </nav>
  );
};
