import { compareView, type ListView } from './compare-view.ts';
import { lintTrace, type Lint } from './lints.ts';
import type { TraceModel, TurnTold } from './model.ts';
import { idOf } from './model/keep.ts';
import { agentText } from './share/agent-text.ts';
import { graphSvg } from './share/graph-svg.ts';
import { marbleTest } from './share/marble-test.ts';
import { marblesSvg } from './share/marbles-svg.ts';
import { toOtlp } from './share/otlp.ts';
import { toPerfetto } from './share/perfetto.ts';

/** What the page can hand on of a turn, as a text. */
export const SHARES = ['lints', 'agent', 'marble-test', 'marbles', 'graph'] as const;
/** What it can hand on of the whole trace. */
export const TRACE_SHARES = ['perfetto', 'otlp'] as const;

/** What can be handed on. */
export type Share = (typeof SHARES)[number] | (typeof TRACE_SHARES)[number];

const TYPES: Readonly<Record<Share, string>> = {
  lints: 'application/json',
  agent: 'text/markdown; charset=utf-8',
  'marble-test': 'text/plain; charset=utf-8',
  marbles: 'image/svg+xml',
  graph: 'image/svg+xml',
  perfetto: 'application/json',
  otlp: 'application/json',
};

/** A text that is handed on, with its type for HTTP. */
export interface Shared {
  readonly type: string;
  readonly text: string;
}

const isShare = (name: string): name is Share => Object.hasOwn(TYPES, name);

/** `compare-` and the turn beside it, as `compareView` names it; without one, the one that suggests itself. */
const COMPARE = 'compare-';

const lintView = (lints: readonly Lint[]): ListView => ({
  others: [],
  chosen: '',
  about: lints.length === 0 ? ['Nothing was noticed.'] : [],
  nodes: lints.map(({ name, finding, evidence, remedy }) => [finding, name, `${evidence} ${remedy}`]),
});

const textOf = (share: Share, model: TraceModel, turn: TurnTold | undefined): string | undefined => {
  if (share === 'perfetto') return toPerfetto(model);
  if (share === 'otlp') return toOtlp(model);
  if (share === 'lints') return JSON.stringify(lintView(lintTrace(model, turn)));
  if (turn === undefined) return undefined;
  if (share === 'agent') return agentText(model, turn);
  if (share === 'marbles') return marblesSvg(turn);
  if (share === 'graph') return graphSvg(turn);
  const test = marbleTest(model, turn);
  return 'code' in test ? test.code : `// This turn cannot be played again: ${test.refused}.\n`;
};

/**
 * What is handed on of a turn or of the trace, by its name; `compare-<turn>` puts that turn beside it. `undefined` for
 * a turn that is not kept, and for another name.
 *
 * @param other a trace to compare with
 */
export function shared(name: string, model: TraceModel, turnId: string, other?: TraceModel): Shared | undefined {
  const turn = model.turns.get(idOf(turnId));
  if (turn !== undefined && name.startsWith(COMPARE)) {
    const view = compareView(turn, name.slice(COMPARE.length), model, other);
    return { type: 'application/json', text: JSON.stringify(view) };
  }
  const text = isShare(name) ? textOf(name, model, turn) : undefined;
  return text === undefined || !isShare(name) ? undefined : { type: TYPES[name], text };
}
