import type { TraceEvent } from '../contract/event.ts';
import { addEvent } from './model/add.ts';
import { emptyTrace } from './model/empty.ts';
import { compareView, type ListView } from './compare-view.ts';
import type { TraceModel, TurnTold } from './model.ts';
import type { PageAsset } from './page-asset.ts';
import { SHARES, TRACE_SHARES, shared } from './shares.ts';

/** For so many turns, the last ones, a report holds what can be handed on; for the others it says so. */
const SHARED_TURNS = 20;
/** What is handed on of the whole trace is as long as the trace. */
const TRACE_SHARES_EVENTS = 20_000;

/** Turns that each of them can be compared with. */
const COMPARED = 3;

const comparisons = (
  model: TraceModel,
  turn: TurnTold,
  other: TraceModel | undefined,
): Array<readonly [string, ListView]> => {
  const { others, ...first } = compareView(turn, '', model, other);
  const held = others.slice(0, COMPARED);
  const refs = ['', ...held.map(([ref]) => ref)];
  return refs.map((ref) => [
    `compare-${ref}`,
    { ...(ref === '' ? first : compareView(turn, ref, model, other)), others: held },
  ]);
};

const sharesOf = (model: TraceModel, other: TraceModel | undefined): Record<string, string> => {
  const held: Record<string, string> = {};
  const turns = [...model.turns.values()].slice(-SHARED_TURNS);
  for (const turn of turns) {
    const { turnId } = turn;
    for (const name of SHARES) {
      const found = shared(name, model, turnId);
      if (found !== undefined) held[`${name} ${turnId}`] = found.text;
    }
    for (const [name, view] of comparisons(model, turn, other)) held[`${name} ${turnId}`] = JSON.stringify(view);
  }
  if (model.eventCount <= TRACE_SHARES_EVENTS)
    for (const name of TRACE_SHARES) held[name] = shared(name, model, '')?.text ?? '';
  return held;
};

/** A value as JSON inside of a script element: nothing in it ends the element, or begins a comment. */
const inScript = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

const base64 = (bytes: Uint8Array): string => btoa(String.fromCodePoint(...bytes));
const digestOf = async (text: string): Promise<string> =>
  base64(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))));

/**
 * The page with its trace, in one file that needs nothing else. Its own policy lets run what is of the page, and load
 * nothing.
 *
 * @param other a trace to compare with; empty without one
 */
export async function reportHtml(
  events: readonly TraceEvent[],
  { script, style }: PageAsset,
  other: readonly TraceEvent[] = [],
): Promise<string> {
  const model = events.reduce(addEvent, emptyTrace());
  const beside = other.length === 0 ? undefined : other.reduce(addEvent, emptyTrace());
  const data = inScript({ lines: events.map((event) => JSON.stringify(event)), shares: sharesOf(model, beside) });
  const [scriptDigest, styleDigest] = await Promise.all([digestOf(script), digestOf(style)]);
  const policy =
    `default-src 'none'; script-src 'sha256-${scriptDigest}'; style-src 'sha256-${styleDigest}'; ` +
    `img-src data:; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="content-security-policy" content="${policy}">
<title>spillway report</title>
<style>${style}</style>
<body><div id="app"></div>
<script type="application/json" id="trace">${data}</script>
<script>${script}</script>
`;
}
