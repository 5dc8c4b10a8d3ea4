import type { ShownAnswer, ShownBreaker } from './answer.ts';
import { table } from '../show/table.ts';
import { duration, messageLine, shownName } from '../show/text.ts';

const breakerRows = (breakers: readonly ShownBreaker[]): string[] =>
  table(
    ['breaker', 'scope', 'state', 'in a row', 'failures', 'probe in'],
    breakers.map(({ toolName, scope, state }) => [
      toolName,
      scope,
      state.type.replaceAll('_', ' '),
      String(state.consecutiveFailures),
      `${state.failures} of ${state.measured}`,
      state.retryAfterMs === undefined ? '' : duration(state.retryAfterMs),
    ]),
  );

const OBSERVED = '; breakers refuse nothing (TOOL_RELIABILITY_OPEN_MODE)';

const storeLine = (store: ShownAnswer['store']): string => {
  if (store === undefined) return 'none yet, or no answer';
  const records = store.records === undefined ? '' : `, ${store.records} records`;
  return `${shownName(store.kind)}, ${shownName(store.durability)}${records}`;
};

const statusLines = ({
  mode = '',
  breakersObserve,
  tools = [],
  breakers = [],
  store,
  retriesLeft,
}: ShownAnswer): string[] => {
  const unlike = tools.filter((tool) => tool.mode !== mode);
  return [
    `mode: ${shownName(mode)}${breakersObserve === true ? OBSERVED : ''}`,
    ...unlike.map((tool) => `  ${shownName(tool.name)}: ${shownName(tool.mode)}`),
    `tools: ${tools.length}`,
    `retries left: ${retriesLeft === undefined ? 'no limit' : Math.floor(retriesLeft)}`,
    `store: ${storeLine(store)}`,
    ...(store?.warnings ?? []).map((warning) => `  warning: ${messageLine(warning)}`),
    ...(breakers.length === 0 ? ['no tool was called yet'] : ['', ...breakerRows(breakers)]),
  ];
};

/** An answer of the admin page for a person. */
export function adminReport(answer: ShownAnswer): string {
  const { action, changed = [], flushed, warnings = [] } = answer;
  const warned = warnings.map((warning) => `warning: ${messageLine(warning)}`);
  if (action === undefined) return statusLines(answer).join('\n');
  if (flushed !== undefined) return [`forgotten: ${flushed}`, ...warned].join('\n');
  return [
    `${shownName(action).replaceAll('_', ' ')}: ${changed.length} ${changed.length === 1 ? 'breaker' : 'breakers'}`,
    ...(changed.length === 0 ? [] : ['', ...breakerRows(changed)]),
    ...warned,
  ].join('\n');
}
