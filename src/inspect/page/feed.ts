import type { TurnTold } from '../model.ts';
import { redraw } from './box.ts';
import { connection, empty, hear, hearTime, lost, model } from './state.ts';

/**
 * Listens to the server, with the token of this page's own address; when it goes away the browser asks again for what
 * came meanwhile, by the last id it got.
 */
const follow = (): void => {
  const source = new EventSource(`events${location.search}`);
  const messages: Readonly<Record<string, (data: string) => void>> = {
    lines: (data) => hear(data.split('\n')),
    clock: (data) => hearTime((JSON.parse(data) as { readonly nowMs?: number }).nowMs),
    lost: (data) => {
      lost.held += (JSON.parse(data) as { readonly count: number }).count;
    },
    // Another process serves it now: what is known is of the one before.
    anew: empty,
    open: () => {
      hearTime();
      connection.held = 'live';
    },
    error: () => {
      connection.held = source.readyState === 2 ? 'refused' : 'lost';
    },
    end: () => {
      source.close();
      connection.held = 'ended';
    },
  };
  for (const name in messages)
    source.addEventListener(name, ({ data }: MessageEvent) => messages[name]?.(String(data)));
};

/** What a report holds beside its events: what can be handed on of its turns. */
interface ReportData {
  readonly lines: readonly string[];
  readonly shares: Readonly<Record<string, string>>;
}

let report: ReportData | undefined;

/** Begins to show: what the page itself holds, or what the server tells. */
export function begin(): void {
  const held = document.querySelector('#trace');
  if (held !== null) {
    report = JSON.parse(held.textContent ?? '') as ReportData;
    connection.held = 'report';
    hear(report.lines);
  } else follow();
}

/** With what this page's own address ends in: the token. */
const addressOf = (name: string, turnId: string): string =>
  `share/${encodeURIComponent(name)}${location.search}&turn=${encodeURIComponent(turnId)}`;

/** A text that is handed on; what a report does not hold it says. */
export async function share(name: string, turnId: string): Promise<string> {
  if (report !== undefined) return report.shares[`${name} ${turnId}`] ?? report.shares[name] ?? GONE;
  const response = await fetch(addressOf(name, turnId));
  return response.ok ? response.text() : GONE;
}

/** Of a turn that made room for others, or that is not among the last ones of a report. */
const GONE = 'It is not kept.';

/** Between two questions for what is drawn again and again. */
const ASK_MS = 1_000;

interface Answer {
  readonly of: string;
  text: string;
  /** Of the events that it knows; while there may be no other question it is more than any. */
  known: number;
}

let answer: Answer | undefined;

/** The same for a view that is drawn again and again: asked for once, and anew, in a while, when events have come. */
export function asked(name: string, turnId: string): string {
  const of = `${name} ${turnId}`;
  if (answer?.of !== of) answer = { of, text: 'asking', known: -1 };
  const mine = answer;
  const { eventCount } = model;
  if (mine.known >= eventCount) return mine.text;
  mine.known = Infinity;
  void share(name, turnId)
    .catch(() => GONE)
    .then((text) => {
      mine.text = text;
      redraw();
      setTimeout(() => {
        mine.known = eventCount;
        redraw();
      }, ASK_MS);
    });
  return mine.text;
}

/** A picture's address; of a turn that runs it is another one each second. */
export function pictureOf(name: 'marbles' | 'graph', { turnId, settledMs }: TurnTold): string {
  if (report !== undefined) return `data:image/svg+xml,${encodeURIComponent(report.shares[`${name} ${turnId}`] ?? '')}`;
  return addressOf(name, turnId) + (settledMs === undefined ? `&at=${Math.floor(model.lastMs / 1_000)}` : '');
}
