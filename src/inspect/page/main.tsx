import { render, type JSX } from 'preact';
import { box, drawWith } from './box.ts';
import { Details } from './details.tsx';
import { begin, share } from './feed.ts';
import { connection, look, lost, model, tab, turn, type Tab } from './state.ts';
import { Compare, Events, Graph, Lints, Marbles, step } from './tabs.tsx';
import { TurnList } from './turn-list.tsx';
import { Waterfall } from './waterfall.tsx';

const VIEWS: Readonly<Record<Tab, () => JSX.Element>> = {
  waterfall: Waterfall,
  graph: Graph,
  marbles: Marbles,
  events: Events,
  compare: Compare,
  lints: Lints,
};

const TABS = Object.keys(VIEWS) as Tab[];

/** -1 for the one arrow, 1 for the other, 0 for any other key. */
const arrowOf = (key: string, back: string, on: string): number =>
  Number(key === `Arrow${on}`) - Number(key === `Arrow${back}`);

const Tabs = (): JSX.Element => (
  <div
    role="tablist"
    class="tabs"
    aria-label="Views"
    onKeyDown={({ key }) => {
      const by = arrowOf(key, 'Left', 'Right');
      const next = TABS.at((TABS.indexOf(tab.held) + by) % TABS.length);
      if (by === 0 || next === undefined) return;
      tab.held = next;
      document.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
    }}
  >
    {TABS.map((name) => (
      <button
        type="button"
        role="tab"
        id={`tab-${name}`}
        aria-selected={tab.held === name}
        aria-controls="view"
        tabIndex={tab.held === name ? 0 : -1}
        onClick={() => {
          tab.held = name;
        }}
      >
        {name}
      </button>
    ))}
  </div>
);

const download = (name: string, text: string): void => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
};

const said = box('');
const copy = async (name: string): Promise<void> => {
  const text = await share(name, turn.held?.turnId ?? '');
  try {
    await navigator.clipboard.writeText(text);
    said.held = 'copied';
  } catch {
    download(`${name}.txt`, text);
    said.held = 'saved as a file';
  }
};
const save = async (name: string): Promise<void> => download(`${name}.json`, await share(name, ''));
const SHARED = [
  ['marble-test', 'Copy as marble test', copy],
  ['agent', 'Copy for an agent', copy],
  ['perfetto', 'Perfetto', save],
  ['otlp', 'OTLP', save],
] as const;

/** What can be handed on: copied, or as a file. */
const Shares = (): JSX.Element => (
  <div class="shares">
    {SHARED.map(([name, label, give]) => (
      <button type="button" onClick={() => void give(name)}>
        {label}
      </button>
    ))}
    <span role="status" class="quiet">
      {said.held}
    </span>
  </div>
);

const Page = (): JSX.Element => {
  const View = VIEWS[tab.held];
  return (
    <>
      <header>
        <h1 data-heard={model.eventCount}>spillway inspect</h1>
        <span role="status" class={`connection c-${connection.held}`}>
          {connection.held}
        </span>
        {[`${lost.held} events`, `${model.forgotten.turns} turns`].map((gone) =>
          gone.startsWith('0') ? null : <span class="quiet">{gone} not kept</span>,
        )}
        <Shares />
      </header>
      <TurnList />
      <main
        onKeyDown={(event) => {
          const by = arrowOf(event.key, 'Up', 'Down');
          if (tab.held !== 'waterfall' || by === 0) return;
          event.preventDefault();
          step(by);
        }}
      >
        <Tabs />
        <div id="view" role="tabpanel" aria-labelledby={`tab-${tab.held}`}>
          <View />
        </div>
      </main>
      <Details />
    </>
  );
};

const app = document.querySelector('#app');
if (app !== null)
  drawWith(() => {
    look();
    render(<Page />, app);
  });
begin();
