import { at, inCall, list, number, of, ofCall, text, toolOf, type File, type Line } from './audit-lines.ts';

/** Twenty questions of an auditor, and of who is on call, each answered from the lines of a file alone. */

const mayHaveRun = (line: Line): boolean =>
  line.type === 'attempt_succeeded' || (line.type === 'attempt_failed' && at(line, 'error', 'uncertain') === true);

/** Which effects were possibly made twice; the resource's own check of the key rules it out. */
export const possiblyTwice = (file: File): string[] => {
  const risky = of(file, 'attempt_failed').filter((line) => at(line, 'error', 'uncertain') === true);
  return [...new Set(risky.map((line) => text(line, 'callId')))].filter((callId) => {
    const ends = ofCall(file, callId).filter(
      (line) =>
        mayHaveRun(line) &&
        text(toolOf(file, text(line, 'toolName')), 'effects') === 'mutating' &&
        at(toolOf(file, text(line, 'toolName')), 'policy', 'enforcesKey') !== true,
    );
    const refuted = inCall(file, callId, 'verified').filter((line) => text(line, 'finding') === 'not_done');
    return ends.length - refuted.length > 1;
  });
};

/** By whose word was it tried again though it was in doubt? */
export const whoAllowedIt = (file: File, callId: string): string => {
  const [started] = inCall(file, callId, 'call_started');
  return at(started, 'terms', 'retrySafe') === true ? `its caller, agent ${text(started, 'agentId')}` : 'nobody';
};

/** Which rule gave the error its class; the tool's own word, or the general rule? */
export const whichRule = (file: File, callId: string): string => {
  const [failed] = inCall(file, callId, 'attempt_failed');
  const own = at(toolOf(file, text(failed, 'toolName')), 'policy', 'classification');
  const status = number(failed, 'error', 'status');
  const isOwn = typeof at(own, String(status)) === 'string';
  return `${text(failed, 'classification')} by ${text(failed, 'rule')}${isOwn ? ', as the tool says' : ''}`;
};

/** When did it open, by whom, when could it have closed at the earliest, and when did it? */
export const openings = (file: File, key: string): readonly string[] => {
  const changes = of(file, 'breaker_changed').filter((line) => text(line, 'toolName') === key);
  const cause = (line: Line): string => {
    if (line['ordered'] === true) return 'an order';
    if (typeof line['callId'] === 'string') return 'a call';
    const isTime = text(line, 'from') === 'open' && text(line, 'to') === 'half_open';
    return isTime ? 'time' : 'another process';
  };
  return changes.map((line) => {
    const forMs = text(line, 'to') === 'open' ? ` for ${Math.round(number(line, 'untilMs') - line.atMs)} ms` : '';
    return `${text(line, 'from')} to ${text(line, 'to')} by ${cause(line)}${forMs}`;
  });
};

/** Whose call opened a breaker here, though another process made it? */
export const openedElsewhere = (here: File, others: readonly File[], key: string): string | undefined => {
  const opened = of(here, 'breaker_changed').find(
    (line) => text(line, 'to') === 'open' && line['callId'] === undefined,
  );
  if (opened === undefined) return undefined;
  const culprits = others
    .flatMap((file) => of(file, 'breaker_changed'))
    .filter((line) => text(line, 'toolName') === key && text(line, 'to') === 'open' && line.atMs <= opened.atMs);
  return culprits.map((line) => text(line, 'callId')).findLast((callId) => callId !== '');
};

/** Which policy was in force for a tool, also for one that only a plan knew; and were its effects said or presumed? */
export const inForce = (file: File, name: string): string => {
  const tool = toolOf(file, name);
  const effects = `${text(tool, 'effects')}${at(tool, 'presumed') === true ? ', presumed' : ''}`;
  const attempts = number(tool, 'policy', 'retry', 'maxAttempts');
  return `${effects}; ${attempts} attempts of ${number(tool, 'policy', 'timeoutMs')} ms`;
};

/** Which call led to the result that this one was given, in which file, and what did it do? */
export const leaderOf = (files: Readonly<Record<string, File>>, callId: string): string | undefined => {
  const told = Object.values(files).flatMap((file) => inCall(file, callId, 'dedupe'));
  const leader = text(
    told.find((line) => text(line, 'step') === 'replayed'),
    'leaderCallId',
  );
  return Object.entries(files).flatMap(([name, file]) =>
    inCall(file, leader, 'settled').map((line) => `${leader} in ${name}: ${text(line, 'result', 'status')}`),
  )[0];
};

/** Whose key did a call take over, what had become of that call, and when could its lease end at the latest? */
export const tookOver = (files: readonly File[], callId: string): readonly [string, string, number] | undefined => {
  const steps = files.flatMap((file) => inCall(file, callId, 'dedupe'));
  const taken = steps.find((line) => text(line, 'step') === 'taken_over');
  const waited = steps.find((line) => text(line, 'step') === 'waiting');
  if (taken === undefined) return undefined;
  const loser = text(taken, 'leaderCallId');
  const lost = files
    .flatMap((file) => inCall(file, loser, 'dedupe'))
    .some((line) => text(line, 'step') === 'lease_lost');
  return [loser, lost ? 'it lost its lease' : 'it was not heard of', taken.atMs - number(waited, 'leaseUntilMs')];
};

/** Who used the key first that a call was refused for? */
export const firstUser = (files: readonly File[], callId: string): string | undefined => {
  const conflict = files
    .flatMap((file) => inCall(file, callId, 'dedupe'))
    .find((line) => text(line, 'step') === 'conflict');
  const key = text(conflict, 'keyFingerprint');
  return files
    .flatMap((file) => of(file, 'dedupe'))
    .filter((line) => text(line, 'keyFingerprint') === key && text(line, 'step') === 'claimed')
    .toSorted((one, other) => one.atMs - other.atMs)
    .map((line) => text(line, 'callId'))[0];
};

/** Which calls were not tried again since the retries of all were used up; how many would have been allowed? */
export const refusedForBudget = (file: File): { readonly calls: number; readonly allowedBefore: number } => {
  const decisions = of(file, 'decision');
  const refused = decisions.filter((line) => text(line, 'code') === 'budget_exhausted');
  const since = (refused[0]?.atMs ?? 0) - number(of(file, 'layer_started')[0], 'retryBudget', 'windowMs');
  const granted = decisions.filter(
    (line) => text(line, 'strategy') === 'retry' && line.atMs > since && line.atMs <= (refused.at(-1)?.atMs ?? 0),
  );
  return { calls: refused.length, allowedBefore: granted.length };
};

/** Which share of the retries did each tenant make? */
export const retriesByTenant = (file: File): Readonly<Record<string, number>> => {
  const tenants = new Map(of(file, 'call_started').map((line) => [line['callId'], text(line, 'tenant')]));
  const counts: Record<string, number> = {};
  for (const line of of(file, 'decision')) {
    const tenant = tenants.get(line['callId']) ?? '';
    if (text(line, 'strategy') === 'retry') counts[tenant] = (counts[tenant] ?? 0) + 1;
  }
  return counts;
};

/** Was each wait that a server asked for kept, and which calls gave up since it was too long? */
export const hints = (file: File): { readonly kept: number; readonly broken: string[]; readonly tooLong: string[] } => {
  const hinted = of(file, 'decision').filter((line) => number(line, 'error', 'retryAfterMs') > 0);
  const retried = hinted.filter((line) => text(line, 'strategy') === 'retry');
  const tooSoon = retried.filter((line) => {
    const next = inCall(file, text(line, 'callId'), 'attempt_started').find(({ seq }) => seq > line.seq);
    return next !== undefined && next.atMs - line.atMs < number(line, 'error', 'retryAfterMs');
  });
  const tooLong = hinted.filter((line) => text(line, 'code') === 'retry_after_too_long');
  const ids = (lines: readonly Line[]): string[] => lines.map((line) => text(line, 'callId'));
  return { kept: retried.length - tooSoon.length, broken: ids(tooSoon), tooLong: ids(tooLong) };
};

/** What did each person approve or deny, and what did it come to? */
export const decidedBy = (file: File, who: string): string[] =>
  of(file, 'approval')
    .filter((line) => text(line, 'by') === who)
    .map((line) => {
      const [settled] = inCall(file, text(line, 'callId'), 'settled');
      const ran = inCall(file, text(line, 'callId'), 'attempt_started').length;
      const status = text(settled, 'result', 'status');
      return `${text(line, 'step')} after ${number(line, 'waitedMs')} ms: ${status}, ran ${ran} times`;
    });

/** Why did it take so long before anything ran: the host's hooks, the store, or a person? */
export const beforeItRan = (file: File, callId: string): Readonly<Record<string, number>> => {
  const [started] = inCall(file, callId, 'call_started');
  const [attempt] = inCall(file, callId, 'attempt_started');
  const [settled] = inCall(file, callId, 'settled');
  const hooks = number(settled, 'hooksMs') || 0;
  const person = inCall(file, callId, 'approval').reduce((sum, line) => sum + (number(line, 'waitedMs') || 0), 0);
  const all = (attempt ?? settled ?? started)?.atMs ?? NaN;
  return { hooks, person, rest: all - (started?.atMs ?? NaN) - hooks - person };
};

/** Was it cut off by the tool's limit or by its caller's? */
export const cutOffBy = (file: File, callId: string): string => {
  const [failed] = inCall(file, callId, 'attempt_failed');
  const limit = number(failed, 'timeoutMs');
  if (Number.isNaN(limit)) return 'neither';
  const asked = number(inCall(file, callId, 'call_started')[0], 'terms', 'timeoutMs');
  const own = number(toolOf(file, text(failed, 'toolName')), 'policy', 'timeoutMs');
  return limit === asked && limit < own ? `its caller, who gives it ${limit} of ${own} ms` : `its tool: ${limit} ms`;
};

/** What would the layer have done to a tool that it only watches, and what did callers get? */
export const watched = (file: File, tool: string): string[] =>
  of(file, 'shadow')
    .filter((line) => text(line, 'toolName') === tool)
    .map((line) => {
      const [settled] = inCall(file, text(line, 'callId'), 'settled');
      return `would ${text(line, 'would')} (${text(line, 'reason')}), gave ${text(settled, 'result', 'status')}`;
    });

/** How many attempts at a tool ran at a time, at most? */
export const atOnce = (file: File, tool: string): number => {
  const moves = file.events.flatMap((line) => {
    if (text(line, 'toolName') !== tool || !line.type.startsWith('attempt_')) return [];
    return [line.type === 'attempt_started' ? 1 : -1];
  });
  let running = 0;
  return moves.reduce((most, move) => Math.max(most, (running += move)), 0);
};

/** Which node held a node up, how long, and how long were the others ready before? */
export const heldUpBy = (file: File, turnId: string, node: string): ReadonlyArray<readonly [string, number]> => {
  const ofTurn = file.events.filter((line) => line['turnId'] === turnId);
  const turn = ofTurn.find(({ type }) => type === 'turn_started');
  const needs = list(
    list(turn, 'nodes').find((each) => text(each, 'id') === node),
    'needs',
  );
  const ended = ofTurn.filter(({ type, nodeId }) => type === 'node_settled' && needs.includes(nodeId));
  return ended
    .toSorted((one, other) => other.atMs - one.atMs)
    .map((line) => [text(line, 'nodeId'), line.atMs - (turn?.atMs ?? NaN)] as const);
};

/** Why did a turn end with a part: which node lacks a value, for which error; and whose default was taken? */
export const whyPartial = (file: File, turnId: string): string[] => {
  const ofTurn = file.events.filter((line) => line['turnId'] === turnId);
  const errors = new Map(
    ofTurn.flatMap((line) =>
      line.type === 'decision'
        ? [[line['nodeId'], `${text(line, 'error', 'kind')} ${number(line, 'error', 'status')}`] as const]
        : [],
    ),
  );
  const needs = new Map(
    list(
      ofTurn.find(({ type }) => type === 'turn_started'),
      'nodes',
    ).map((node) => [text(node, 'id'), list(node, 'needs')]),
  );
  return ofTurn.flatMap((line) => {
    if (line.type !== 'node_settled' || text(line, 'state') === 'succeeded') return [];
    const lacking = needs.get(text(line, 'nodeId'))?.filter((need) => errors.has(need)) ?? [];
    const why = errors.get(line['nodeId']) ?? `without ${lacking.join(', ')}`;
    return [`${text(line, 'nodeId')} ${text(line, 'state')}: ${why}`];
  });
};

/** Which calls had not ended when the file ends; what may they have done, and until when may they hold a key? */
export const leftOpen = (file: File): string[] => {
  const ended = new Set([...of(file, 'settled'), ...of(file, 'abandoned')].map(({ callId }) => callId));
  const open = of(file, 'call_started').filter(({ callId }) => !ended.has(callId));
  return open.map((line) => {
    const events = ofCall(file, text(line, 'callId'));
    const tool = toolOf(file, text(line, 'toolName'));
    const claimed = events.find((event) => ['claimed', 'taken_over'].includes(text(event, 'step')));
    const runs = events.some(({ type }) => type === 'attempt_started');
    const lease =
      claimed === undefined
        ? ''
        : `, its key is free ${number(tool, 'policy', 'dedupe', 'leaseMs')} ms after it stopped`;
    return `${text(tool, 'effects')}, ${runs ? 'may have run' : 'did not run'}${lease}`;
  });
};

/** At what time of the day was it? */
export const timeOf = ({ header }: File, { atMs }: Line): string =>
  new Date(Date.parse(text(header, 'time')) + atMs - header.atMs).toISOString();

/** Is the file whole: no number is missing, nothing was dropped, and its end was written? */
export const isWhole = ({ events, notes }: File): readonly [missing: number, dropped: number, ended: boolean] => {
  const seqs = events.flatMap(({ type, seq }) => (type === 'layer_started' ? [] : [seq]));
  const dropped = notes.reduce((sum, note) => sum + (note.type === 'dropped' ? number(note, 'count') : 0), 0);
  const last = notes.at(-1);
  const missing = (seqs.at(-1) ?? 0) - (seqs[0] ?? 0) + 1 - seqs.length;
  return [missing, dropped, last?.type === 'file_ended' && last['lastSeq'] === seqs.at(-1)];
};
