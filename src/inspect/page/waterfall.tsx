import type { JSX } from 'preact';
import type { AttemptTold, BreakerTold, CallTold, NodeTold, TurnTold } from '../model.ts';
import { pendingOfCall, pendingOfTurn } from '../model/pending.ts';
import { duration } from '../text.ts';
import { scaleOf, type Scale } from './scale.ts';
import { model, node as chosen, nodeId, nowMs, reasonOf, turn } from './state.ts';
import { Virtual } from './virtual.tsx';

const HEIGHT = 28;
/** Of a call with more the last ones are drawn. */
const BARS_MAX = 40;
const LANES_MAX = 12;

const left = (scale: Scale, ms: number): string => `${(scale.placeOf(ms) * 100).toFixed(3)}%`;
const between = (scale: Scale, fromMs: number, toMs: number): { left: string; width: string } => ({
  left: left(scale, fromMs),
  width: `${Math.max(0, (scale.placeOf(toMs) - scale.placeOf(fromMs)) * 100).toFixed(3)}%`,
});

const Bar = ({ scale, attempt }: { readonly scale: Scale; readonly attempt: AttemptTold }): JSX.Element => {
  const { startMs, endMs = Math.max(startMs, nowMs.value), outcome, alternative, toolName, decision, late } = attempt;
  const backoffMs = decision?.strategy === 'retry' ? (decision.delayMs ?? 0) : 0;
  const what = `${toolName}, attempt ${attempt.attempt}: ${outcome.replaceAll('_', ' ')}, ${duration(endMs - startMs)}`;
  return (
    <>
      <i
        class={`bar b-${outcome}${alternative ? ' other' : ''}${late ? ' late' : ''}`}
        title={what}
        style={between(scale, startMs, endMs)}
      />
      {decision !== undefined && backoffMs > 0 ? (
        <i
          class="backoff"
          title={`backoff of ${duration(backoffMs)}`}
          style={between(scale, decision.atMs, decision.atMs + backoffMs)}
        />
      ) : null}
    </>
  );
};

/** What is waited for now, as a ghost that reaches to its end, with the time that is left. */
const Ghost = ({ scale, call }: { readonly scale: Scale; readonly call: CallTold }): JSX.Element | null => {
  const timer = pendingOfCall(call);
  if (timer === undefined) return null;
  const leftMs = Math.max(0, timer.dueMs - nowMs.value);
  return (
    <span class="ghost" data-kind={timer.kind} style={{ left: left(scale, timer.fromMs) }}>
      {timer.kind} <b class="countdown">{duration(leftMs)}</b>
    </span>
  );
};

const KeySigns = ({ scale, call }: { readonly scale: Scale; readonly call: CallTold }): JSX.Element => (
  <>
    {call.key
      .filter(({ step }) => step === 'replayed' || step === 'waiting')
      .map(({ step, atMs, leaderCallId = '' }) => (
        <i
          class={`diamond d-${step}`}
          title={`${step === 'replayed' ? 'replays' : 'waits for'} ${model.calls.get(leaderCallId)?.nodeId ?? (leaderCallId || 'another call')}`}
          style={{ left: left(scale, atMs) }}
        />
      ))}
  </>
);

const stateOf = ({ state, startMs }: NodeTold): string => state ?? (startMs === undefined ? 'waiting' : 'running');

const LATE: Readonly<Record<string, string>> = { succeeded: 'kept', defaulted: 'kept', timed_out: 'cut' };

/** What the deadline made of it: kept, cut, or late where it went on. */
const fateOf = ({ deadlineMs }: TurnTold, { state, call }: NodeTold): string =>
  deadlineMs === undefined
    ? ''
    : (call?.attempts ?? []).some(({ late, endMs = 0 }) => late || endMs > deadlineMs)
      ? 'late'
      : (LATE[state ?? ''] ?? '');

const Track = ({ scale, call }: { readonly scale: Scale; readonly call: CallTold | undefined }): JSX.Element => (
  <span class="track">
    {call?.attempts.slice(-BARS_MAX).map((attempt) => (
      <Bar scale={scale} attempt={attempt} />
    ))}
    {call === undefined ? null : <KeySigns scale={scale} call={call} />}
    {call === undefined ? null : <Ghost scale={scale} call={call} />}
  </span>
);

const Row = ({
  told,
  node,
  scale,
}: {
  readonly told: TurnTold;
  readonly node: NodeTold;
  readonly scale: Scale;
}): JSX.Element => {
  const { call } = node;
  const reason = reasonOf(node);
  const state = stateOf(node);
  const fate = fateOf(told, node);
  const words = [state.replaceAll('_', ' '), node.attempts > 1 ? `${node.attempts} attempts` : '', fate].filter(
    (word) => word !== '',
  );
  return (
    <button
      type="button"
      class="row"
      data-node={node.nodeId}
      data-state={state}
      data-attempts={node.attempts}
      data-reason={reason}
      aria-pressed={chosen.value === node}
      onClick={() => {
        nodeId.value = node.nodeId;
      }}
    >
      <span class="label">
        {node.nodeId} <small>{node.usedAlternative ? `by ${node.toolName}` : ''}</small>
      </span>
      <Track scale={scale} call={call} />
      <span class={`state s-${state}`}>
        {words.join(', ')} <small>{reason}</small>
      </span>
    </button>
  );
};

const Lane = ({ breaker, scale }: { readonly breaker: BreakerTold; readonly scale: Scale }): JSX.Element => {
  const { key, scope, changes, firstState, state } = breaker;
  const points = [{ atMs: -Infinity, to: firstState }, ...changes];
  const last = changes.at(-1);
  const cooling = state === 'open' && last?.untilMs !== undefined ? last : undefined;
  return (
    <div class="row lane">
      <span class="label">
        breaker {key} <small>{scope}</small>
      </span>
      <span class="track">
        {points.map(({ atMs, to }, index) => {
          const until = points[index + 1]?.atMs ?? scale.endMs;
          return until < scale.startMs || atMs > scale.endMs ? null : (
            <i class={`segment k-${to}`} title={to} style={between(scale, Math.max(atMs, scale.startMs), until)} />
          );
        })}
        {cooling === undefined ? null : (
          <span class="ghost" data-kind="cooldown" style={{ left: left(scale, cooling.atMs) }}>
            cooldown <b class="countdown">{duration(Math.max(0, (cooling.untilMs ?? 0) - nowMs.value))}</b>
          </span>
        )}
      </span>
      <span class={`state k-${state}`}>{state.replaceAll('_', ' ')}</span>
    </div>
  );
};

/** The breakers of the turn's tools that were ever anything but closed. */
const lanesOf = (told: TurnTold): BreakerTold[] => {
  const keys = new Set(
    told.nodes.slice(0, 2_000).flatMap(({ call, toolName }) => [toolName, call?.breaker?.key ?? toolName]),
  );
  return [...model.breakers.values()]
    .filter(({ key, changeCount, firstState }) => keys.has(key) && (changeCount > 0 || firstState !== 'closed'))
    .slice(0, LANES_MAX);
};

const Axis = ({ scale, told }: { readonly scale: Scale; readonly told: TurnTold }): JSX.Element => {
  const deadline = pendingOfTurn(told);
  return (
    <div class="row axis">
      <span class="label">time</span>
      <span class="track">
        {scale.ticks.map((ms) => (
          <span key={ms} class="tick" style={{ left: left(scale, scale.startMs + ms) }}>
            {duration(ms)}
          </span>
        ))}
        {scale.folds.map(({ fromMs, toMs }) => (
          <span
            key={fromMs}
            class="fold"
            title={`${duration(toMs - fromMs)} in which nothing ran`}
            style={between(scale, fromMs, toMs)}
          >
            ⋯
          </span>
        ))}
      </span>
      <span class="state">
        {deadline === undefined ? (
          ''
        ) : (
          <>
            deadline in{' '}
            <b class="countdown" data-kind="deadline">
              {duration(Math.max(0, deadline.dueMs - nowMs.value))}
            </b>
          </>
        )}
      </span>
    </div>
  );
};

/** The turn in plan order: a row for each node, a bar for each attempt, a wall where the deadline passed. */
export const Waterfall = (): JSX.Element => {
  const told = turn.value;
  if (told === undefined) return <p class="quiet">Nothing has happened yet.</p>;
  const isOpen = told.settledMs === undefined && told.number > 0;
  const scale = scaleOf(told, isOpen ? nowMs.value : told.lastMs);
  return (
    <section class="waterfall" id="waterfall" aria-label="Waterfall">
      <Axis scale={scale} told={told} />
      {lanesOf(told).map((breaker) => (
        <Lane key={`${breaker.scope} ${breaker.key}`} breaker={breaker} scale={scale} />
      ))}
      <div class="rows">
        {told.deadlineMs === undefined ? null : (
          <div class="walls" aria-hidden="true">
            <i class="wall" style={{ left: left(scale, told.deadlineMs) }} />
          </div>
        )}
        <Virtual
          label="Nodes of the turn"
          items={told.nodes}
          height={HEIGHT}
          keyOf={(node) => node.nodeId}
          row={(node) => <Row told={told} node={node} scale={scale} />}
        />
      </div>
      {told.moreNodes > 0 ? <p class="quiet">{told.moreNodes} more nodes are not kept.</p> : null}
    </section>
  );
};
