import type { JSX } from 'preact';
import type { AttemptTold, NodeTold } from '../model.ts';
import { callsOf } from '../model/keep.ts';
import { duration } from '../text.ts';
import { model, node, reasonOf, titleOf, turn, worded } from './state.ts';

const ATTEMPTS_MAX = 30;

type Facts = ReadonlyArray<readonly [name: string, value: string | undefined]>;

/** Facts by name; those without a value are left out. */
const List = ({ facts }: { readonly facts: Facts }): JSX.Element => (
  <dl>
    {facts.map(([name, value = '']) =>
      value === '' ? null : (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ),
    )}
  </dl>
);

const errorText = ({ error }: AttemptTold): string =>
  error === undefined ? 'none' : `${error.kind} ${error.code ?? error.status ?? ''}: ${error.message}`;

/** `NaN` while it runs. */
const tookMs = ({ startMs, endMs = NaN }: AttemptTold): number => endMs - startMs;

/** What differs from the attempt before. */
const differences = (attempt: AttemptTold, before: AttemptTold): string[] => {
  const [own, other] = [tookMs(attempt), tookMs(before)];
  return [
    ...(attempt.toolName === before.toolName ? [] : [`${attempt.toolName} in place of ${before.toolName}`]),
    ...(own - other ? [`${own > other ? '+' : '−'}${duration(Math.abs(own - other))}`] : []),
    ...(errorText(attempt) === errorText(before)
      ? ['the same error']
      : [`${worded(attempt.outcome)} after ${worded(before.outcome)}`]),
  ];
};

const factsOf = (attempt: AttemptTold, before: AttemptTold | undefined): Facts => {
  const { error, classification, rule, decision, breakerState, dueAtMs, startMs, progress, late } = attempt;
  const took = tookMs(attempt);
  const limit = dueAtMs === undefined ? '' : ` of at most ${duration(dueAtMs - startMs)}`;
  const { strategy = '', delayMs, reason, code, budgetLeft } = decision ?? {};
  return [
    ['time', `${took >= 0 ? duration(took) : 'running'}${limit}${late ? ', late' : ''}`],
    ['progress', progress],
    ['error', error && errorText(attempt)],
    ['class', classification && `${classification}, by ${rule ?? ''}`],
    ['doubt', error?.uncertain && 'it may have taken effect'],
    ['breaker', worded(breakerState)],
    ['decision', strategy && `${strategy}${delayMs === undefined ? '' : ` in ${duration(delayMs)}`}: ${reason}`],
    ['no retry', strategy === 'retry' ? '' : code],
    ['budget', budgetLeft === undefined ? '' : `${budgetLeft} retries left`],
    ['change', before && differences(attempt, before).join('; ')],
  ];
};

const nodeFacts = (told: NodeTold): Facts => {
  const { call, needs } = told;
  const { timeoutMs, retry } = model.tools.get(call?.askedTool ?? told.toolName)?.policy ?? {};
  return [
    ['state', worded(told.state ?? 'running')],
    ['reason', reasonOf(told)],
    ['default', told.defaulted],
    ['needs', needs.join(', ')],
    ['tenant', call?.tenant],
    ['call', call?.callId],
    [
      'policy',
      retry && `${duration(timeoutMs ?? 0)} an attempt, ${retry.maxAttempts} in ${duration(retry.maxTotalTimeMs)}`,
    ],
    ...(call?.key ?? []).map(
      ({ step, leaderCallId = '', message = '' }) => ['key', `${worded(step)} ${leaderCallId} ${message}`] as const,
    ),
    ...callsOf(told).flatMap(({ notes }) => notes.map(({ text }) => ['note', text] as const)),
  ];
};

/** No node is chosen. */
const Whole = (): JSX.Element => (
  <>
    <p>{turn.held?.summary}</p>
    <p>{turn.held?.worker && `runs on ${turn.held.worker}`}</p>
    {turn.held?.moves.map(({ from, to, afterMs }) => (
      <p>{`moved from ${from} to ${to} after ${duration(afterMs)}`}</p>
    ))}
    <p class="quiet">Choose a row to see why.</p>
  </>
);

const Chosen = ({ told }: { readonly told: NodeTold }): JSX.Element => (
  <>
    <h2>{titleOf(told)}</h2>
    <List facts={nodeFacts(told)} />
    <ol>
      {callsOf(told)
        .flatMap(({ attempts }) => attempts)
        .slice(-ATTEMPTS_MAX)
        .map((attempt, index, all) => (
          <li>
            <h3>
              {attempt.toolName} #{attempt.attempt}{' '}
              <span class={`s-${attempt.outcome}`}>{worded(attempt.outcome)}</span>
            </h3>
            <List facts={factsOf(attempt, all[index - 1])} />
          </li>
        ))}
    </ol>
  </>
);

/** The node that was chosen: its call, attempt by attempt, with what was decided and why. */
export const Details = (): JSX.Element => (
  <aside class="details" aria-label="Details">
    {node.held === undefined ? <Whole /> : <Chosen told={node.held} />}
  </aside>
);
