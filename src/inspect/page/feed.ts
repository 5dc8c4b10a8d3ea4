import type { TurnTold } from '../model.ts';
import { redraw } from './box.ts';
import { connection, hear, lost, model, nowMs, turn } from './state.ts';

/** What the server said of the time, and when by the page's own clock. */
let clock: { readonly nowMs: number; readonly heardMs: number } | undefined;

/** Counts down while something is waited for; a page on which nothing moves is not drawn. */
const tick = (): void => {
  if (clock === undefined || connection.value !== 'live') nowMs.value = model.lastMs;
  else if (turn.value?.status === 'running') nowMs.value = clock.nowMs + performance.now() - clock.heardMs;
  requestAnimationFrame(tick);
};

const MESSAGES: Readonly<Record<string, (data: string) => void>> = {
  lines: (data) => hear(data.split('\n')),
  clock: (data) => {
    const { nowMs: at } = JSON.parse(data) as { readonly nowMs?: number };
    clock = at === undefined ? undefined : { nowMs: at, heardMs: performance.now() };
  },
  lost: (data) => {
    lost.value += (JSON.parse(data) as { readonly count: number }).count;
  },
  end: () => {
    connection.value = 'ended';
  },
};

/** The place after the last message that came whole: from there the server goes on. */
let lastId = '';

const take = (block: string): void => {
  const fields = block.split('\n').map((line) => {
    const at = line.indexOf(': ');
    return [line.slice(0, at), line.slice(at + 2)] as const;
  });
  const valueOf = (name: string): string | undefined => fields.find(([field]) => field === name)?.[1];
  const data = fields.flatMap(([field, value]) => (field === 'data' ? [value] : [])).join('\n');
  const name = valueOf('event');
  if (name !== undefined) MESSAGES[name]?.(data);
  lastId = valueOf('id') ?? lastId;
};

const listen = async (token: string): Promise<void> => {
  const response = await fetch('events', {
    headers: { authorization: `Bearer ${token}`, ...(lastId === '' ? {} : { 'last-event-id': lastId }) },
  });
  if (!response.ok || response.body === null) {
    connection.value = response.status === 403 ? 'refused' : 'lost';
    return;
  }
  connection.value = 'live';
  let rest = '';
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    blocks.forEach(take);
  }
};

/** Listens to the server and, when it goes away, asks again for what came meanwhile. */
const follow = async (token: string): Promise<void> => {
  for (;;) {
    await listen(token).catch(() => undefined);
    if (connection.value === 'ended' || connection.value === 'refused') return;
    connection.value = 'lost';
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
  }
};

/** The address with the token that this page has. */
export function withToken(path: string): string {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  return `${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(token)}`;
}

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
    report = JSON.parse(held.textContent ?? '{}') as ReportData;
    connection.value = 'report';
    hear(report.lines);
  } else void follow(new URLSearchParams(location.search).get('token') ?? '');
  requestAnimationFrame(tick);
}

const NOT_HELD = 'This report holds it for its last turns only.';

/** A text that is handed on; what a report does not hold it says. */
export async function share(name: string, turnId: string): Promise<string> {
  if (report !== undefined) return report.shares[`${name} ${turnId}`] ?? report.shares[name] ?? NOT_HELD;
  const response = await fetch(withToken(`share/${name}?turn=${encodeURIComponent(turnId)}`));
  return response.ok ? response.text() : 'It is not there any more.';
}

let answer: { readonly of: string; text: string } | undefined;

/** The same for a view that is drawn again and again: asked for once, and anew when events have come. */
export function asked(name: string, turnId: string): string {
  const of = `${name} ${turnId} ${model.eventCount}`;
  if (answer?.of === of) return answer.text;
  const asking = { of, text: answer?.of.startsWith(`${name} ${turnId} `) === true ? answer.text : 'asking' };
  answer = asking;
  void share(name, turnId).then((text) => {
    asking.text = text;
    redraw();
  });
  return asking.text;
}

/** A picture's address; of a turn that runs it is another one each second. */
export function pictureOf(name: 'marbles' | 'graph', { turnId, settledMs }: TurnTold): string {
  const held = report?.shares[`${name} ${turnId}`];
  if (report !== undefined) return `data:image/svg+xml,${encodeURIComponent(held ?? '')}`;
  const at = settledMs === undefined ? `&at=${Math.floor(model.lastMs / 1_000)}` : '';
  return withToken(`share/${name}?turn=${encodeURIComponent(turnId)}${at}`);
}
