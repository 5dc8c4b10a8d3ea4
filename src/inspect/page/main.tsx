import { render, type JSX } from 'preact';
import { box, drawWith } from './box.ts';
import { Details } from './details.tsx';
import { begin, share } from './feed.ts';
import { TABS, connection, lost, model, tab, turn, type Tab } from './state.ts';
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

const CONNECTIONS: Readonly<Record<string, string>> = {
  report: 'a report',
  connecting: 'connecting',
  live: 'live',
  ended: 'ended',
  lost: 'lost; asking again',
  refused: 'refused: the token is wrong',
};

const Tabs = (): JSX.Element => (
  <div
    role="tablist"
    class="tabs"
    aria-label="Views"
    onKeyDown={({ key }) => {
      const by = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
      const next = TABS[(TABS.indexOf(tab.value) + by + TABS.length) % TABS.length];
      if (by === 0 || next === undefined) return;
      tab.value = next;
      document.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
    }}
  >
    {TABS.map((name) => (
      <button
        key={name}
        type="button"
        role="tab"
        id={`tab-${name}`}
        aria-selected={tab.value === name}
        aria-controls="view"
        tabIndex={tab.value === name ? 0 : -1}
        onClick={() => {
          tab.value = name;
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
/** What can be handed on: copied, or as a file. */
const Shares = (): JSX.Element => {
  const copy = async (name: string): Promise<void> => {
    const text = await share(name, turn.value?.turnId ?? '');
    try {
      await navigator.clipboard.writeText(text);
      said.value = 'copied';
    } catch {
      download(`${name}.txt`, text);
      said.value = 'saved as a file';
    }
  };
  const save = async (name: string): Promise<void> => download(`${name}.json`, await share(name, ''));
  return (
    <div class="shares">
      <button type="button" onClick={() => void copy('marble-test')}>
        Copy as marble test
      </button>
      <button type="button" onClick={() => void copy('agent')}>
        Copy for an agent
      </button>
      <button type="button" onClick={() => void save('perfetto')}>
        Perfetto
      </button>
      <button type="button" onClick={() => void save('otlp')}>
        OTLP
      </button>
      <span role="status" class="quiet">
        {said}
      </span>
    </div>
  );
};

const Page = (): JSX.Element => {
  const View = VIEWS[tab.value];
  return (
    <>
      <header>
        <h1 data-heard={model.eventCount}>spillway inspect</h1>
        <span role="status" class={`connection c-${connection.value}`}>
          {CONNECTIONS[connection.value]}
        </span>
        {lost.value > 0 ? <span class="quiet">{`${lost.value} events not kept`}</span> : null}
        {model.forgotten.turns > 0 ? <span class="quiet">{`${model.forgotten.turns} turns not kept`}</span> : null}
        <Shares />
      </header>
      <TurnList />
      <main
        onKeyDown={(event) => {
          if (tab.value !== 'waterfall' || !['ArrowDown', 'ArrowUp'].includes(event.key)) return;
          event.preventDefault();
          step(event.key === 'ArrowDown' ? 1 : -1);
        }}
      >
        <Tabs />
        <div id="view" role="tabpanel" aria-labelledby={`tab-${tab.value}`}>
          <View />
        </div>
      </main>
      <Details />
    </>
  );
};

const app = document.querySelector('#app');
if (app !== null) drawWith(() => render(<Page />, app));
begin();
