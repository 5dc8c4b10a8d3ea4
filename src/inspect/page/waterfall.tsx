import type { JSX } from 'preact';
import type { AttemptTold, BreakerTold, CallTold, NodeTold, TurnTold } from '../model.ts';
import { endOfTime, pendingOfCall } from '../model/pending.ts';
import { duration } from '../text.ts';
import { scaleOf, type Scale } from './scale.ts';
import { derived } from './box.ts';
import {
  isWell,
  model,
  movingMs,
  news,
  node as chosen,
  nodeId,
  nowMs,
  reasonOf,
  titleOf,
  turn,
  worded,
} from './state.ts';
import { Virtual } from './virtual.tsx';

const HEIGHT = 28;
/** Of a call with more the last ones are drawn. */
const BARS_MAX = 40;
const LANES_MAX = 12;

interface Waited {
  readonly kind: string;
  readonly fromMs: number;
  readonly dueMs?: number | undefined;
}

const percent = (share: number): string => `${(Math.max(0, share) * 100).toFixed(3)}%`;
const left = (scale: Scale, ms: number): string => percent(scale.placeOf(ms));
const between = (scale: Scale, fromMs: number, toMs: number): { left: string; width: string } => ({
  left: left(scale, fromMs),
  width: percent(scale.placeOf(toMs) - scale.placeOf(fromMs)),
});

interface BarProps {
  readonly scale: Scale;
  readonly attempt: AttemptTold;
  readonly isUndoing: boolean;
}

const Bar = ({ scale, attempt, isUndoing }: BarProps): JSX.Element => {
  const { startMs, endMs = Math.max(startMs, movingMs()), outcome, alternative, toolName, decision, late } = attempt;
  const backoffMs = decision?.strategy === 'retry' ? (decision.delayMs ?? 0) : 0;
  const what = `${toolName}, attempt ${attempt.attempt}: ${worded(outcome)}, ${duration(endMs - startMs)}`;
  return (
    <>
      <i
        class={`bar b-${outcome}${alternative ? ' other' : ''}${isUndoing ? ' undo' : ''}${late ? ' late' : ''}`}
        title={what}
        style={between(scale, startMs, endMs)}
      />
      {decision !== undefined && backoffMs > 0 ? (
        <i
          class="backoff"
          title={`backoff of ${duration(backoffMs)}`}
          style={between(scale, decision.atMs, decision.atMs + backoffMs)}
        >
          <b>{duration(backoffMs)}</b>
        </i>
      ) : null}
    </>
  );
};

/** What is waited for now: how long it may still take, or how long it has taken where nothing ends it. */
const Waiting = ({ kind, fromMs, dueMs }: Waited): JSX.Element => (
  <>
    {kind}{' '}
    <b class="countdown">{duration(Math.max(0, dueMs === undefined ? movingMs() - fromMs : dueMs - movingMs()))}</b>
  </>
);

/** The same as a ghost in the lane: what is left of it, which ends where it is due. */
const Ghost = ({ scale, timer }: { readonly scale: Scale; readonly timer: Waited | undefined }): JSX.Element | null => {
  if (timer === undefined) return null;
  const due = scale.placeOf(timer.dueMs ?? nowMs);
  return (
    <span
      class="ghost"
      data-kind={timer.kind}
      style={{ right: percent(1 - due), width: percent(due - scale.placeOf(nowMs)) }}
    >
      <Waiting {...timer} />
    </span>
  );
};

/** A person is waited for, or a timer. */
const waitedFor = (call: CallTold): Waited | undefined =>
  call.waitsSinceMs === undefined ? pendingOfCall(call) : { kind: 'approval', fromMs: call.waitsSinceMs };

/** How many rows below a call its leader stands; 0 where it stands in another turn. */
const rowsTo = (leader: CallTold | undefined, call: CallTold): number => {
  const nodes = turn.held?.nodes ?? [];
  const at = nodes.findIndex((one) => one.call === leader);
  return leader === undefined || at < 0 ? 0 : at - nodes.findIndex((one) => one.call === call);
};

/** A diamond where a call had another's outcome or waited for it, with a line to the row of that one. */
const KeySigns = ({ scale, call }: { readonly scale: Scale; readonly call: CallTold }): JSX.Element => (
  <>
    {call.key
      .filter(({ step }) => step === 'replayed' || step === 'waiting')
      .map(({ step, atMs, leaderCallId = '' }) => {
        const leader = model.calls.get(leaderCallId);
        const rows = rowsTo(leader, call);
        return (
          <>
            <i
              class={`diamond d-${step}`}
              title={`${step}: ${leader?.nodeId ?? leaderCallId}`}
              style={{ left: left(scale, atMs) }}
            />
            {rows === 0 ? null : (
              <i
                class={`leader${rows < 0 ? ' up' : ''}`}
                style={{ left: left(scale, atMs), height: `${Math.abs(rows) * HEIGHT}px` }}
              />
            )}
          </>
        );
      })}
  </>
);

const stateOf = ({ state, startMs }: NodeTold): string => state ?? (startMs === undefined ? 'waiting' : 'running');

/** What the deadline makes of nodes. */
const FATES = ['kept', 'late', 'cut'];

/** Kept, cut, or late where it goes on. */
const fateOf = ({ deadlineMs }: TurnTold, { state, call }: NodeTold): string | undefined =>
  deadlineMs === undefined
    ? undefined
    : isWell(state)
      ? 'kept'
      : call?.attempts.some(({ late, outcome }) => late || outcome === 'running')
        ? 'late'
        : state === 'timed_out'
          ? 'cut'
          : undefined;

/** What its call did, and the one that undid that. */
const Track = ({ scale, node: { call, undoing } }: { readonly scale: Scale; readonly node: NodeTold }): JSX.Element => (
  <span class="track">
    {[call, undoing].map((one) =>
      one === undefined ? null : (
        <>
          {one.attempts.slice(-BARS_MAX).map((attempt) => (
            <Bar scale={scale} attempt={attempt} isUndoing={one === undoing} />
          ))}
          <KeySigns scale={scale} call={one} />
          <Ghost scale={scale} timer={waitedFor(one)} />
        </>
      ),
    )}
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
  const reason = reasonOf(node);
  const state = stateOf(node);
  const fate = fateOf(told, node);
  return (
    <button
      type="button"
      class="row"
      data-node={node.nodeId}
      data-state={state}
      data-attempts={node.attempts}
      data-reason={reason}
      aria-pressed={chosen.held === node}
      onClick={() => {
        nodeId.held = node.nodeId;
      }}
    >
      <span class="label">
        {titleOf(node)} <small>{node.usedAlternative ? `by ${node.toolName}` : ''}</small>
      </span>
      <Track scale={scale} node={node} />
      <span class={`state s-${state}`}>
        {worded(state)}
        {node.attempts > 1 ? ` ×${node.attempts}` : ''}
        {fate && `, ${fate}`} <small>{reason}</small>
      </span>
    </button>
  );
};

const Lane = ({ breaker, scale }: { readonly breaker: BreakerTold; readonly scale: Scale }): JSX.Element => {
  const { key, scope, changes, firstState, state } = breaker;
  const points = [{ atMs: -Infinity, to: firstState, ordered: false }, ...changes];
  const last = changes.at(-1);
  const cooling =
    state === 'open' && last?.untilMs !== undefined && last.untilMs > nowMs
      ? { kind: 'cooldown', fromMs: last.atMs, dueMs: last.untilMs }
      : undefined;
  return (
    <div class="row lane">
      <span class="label">
        breaker {key} <small>{scope}</small>
      </span>
      <span class="track">
        {points.map(({ atMs, to, ordered }, index) => {
          const until = points[index + 1]?.atMs ?? scale.endMs;
          return until < scale.startMs || atMs > scale.endMs ? null : (
            <i class={`segment k-${to}`} title={ordered ? `${to}, ordered` : to} style={between(scale, atMs, until)} />
          );
        })}
        <Ghost scale={scale} timer={cooling} />
      </span>
      <span class={`state k-${state}`}>{worded(state)}</span>
    </div>
  );
};

/** The breakers of the turn's tools that were ever anything but closed. */
const lanesOf = (told: TurnTold): BreakerTold[] => {
  const keys = new Set(told.nodes.slice(0, 2_000).flatMap(({ call, toolName }) => [toolName, call?.breaker?.key]));
  return [...model.breakers.values()]
    .filter(({ key, changeCount, firstState }) => keys.has(key) && (changeCount > 0 || firstState !== 'closed'))
    .slice(0, LANES_MAX);
};

const Axis = ({ scale, told }: { readonly scale: Scale; readonly told: TurnTold }): JSX.Element => (
  <div class="row axis">
    <span class="label">time</span>
    <span class="track">
      {scale.ticks.map((ms) => (
        <span class="tick" style={{ left: left(scale, scale.startMs + ms) }}>
          {duration(ms)}
        </span>
      ))}
      {scale.folds.map(([fromMs, toMs]) => (
        <i class="fold" title={`${duration(toMs - fromMs)} of nothing`} style={between(scale, fromMs, toMs)} />
      ))}
    </span>
    <span class="state">
      {told.deadlineMs === undefined
        ? told.status === 'running' &&
          told.timeoutMs < Infinity && (
            <Waiting kind={told.heldBy ? 'waits' : 'deadline'} fromMs={0} dueMs={endOfTime(told, nowMs)} />
          )
        : FATES.map((fate) => `${told.nodes.filter((one) => fateOf(told, one) === fate).length} ${fate}`).join(', ')}
    </span>
  </div>
);

const endOf = ({ number, settledMs, lastMs }: TurnTold): number => (number > 0 ? (settledMs ?? nowMs) : lastMs);

const scaled = derived(
  () => turn.held && scaleOf(turn.held, endOf(turn.held)),
  () => [turn.held?.turnId, news, turn.held && endOf(turn.held)].join(' '),
);

/** The turn in plan order: a row for each node, a bar for each attempt, a wall where the deadline passed. */
export const Waterfall = (): JSX.Element => {
  const told = turn.held;
  const scale = scaled.held;
  if (told === undefined || scale === undefined) return <p class="quiet">Nothing yet.</p>;
  return (
    <section class="waterfall" id="waterfall" aria-label="Waterfall">
      <Axis scale={scale} told={told} />
      {lanesOf(told).map((breaker) => (
        <Lane breaker={breaker} scale={scale} />
      ))}
      <div class="rows">
        <div class="walls" aria-hidden="true" style={{ maxHeight: `${told.nodes.length * HEIGHT}px` }}>
          {told.deadlineMs === undefined ? null : <i class="wall" style={{ left: left(scale, told.deadlineMs) }} />}
          {told.moves.map(({ atMs }) => (
            <i class="wall seam" style={{ left: left(scale, atMs) }} />
          ))}
        </div>
        <Virtual
          label="Nodes of the turn"
          items={told.nodes}
          height={HEIGHT}
          keyOf={(node) => node.nodeId}
          row={(node) => <Row told={told} node={node} scale={scale} />}
        />
      </div>
      {told.moreNodes > 0 ? <p class="quiet">{told.moreNodes} nodes not kept</p> : null}
    </section>
  );
};
