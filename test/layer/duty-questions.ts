import { at, inCall, list, number, of, ofCall, text, toolOf, type File, type Line } from './audit-lines.ts';

/** Twenty more questions, of who is on duty, of an auditor and of a model, answered from the lines of a file alone. */

const callOf = (line: unknown): string => text(line, 'callId');
const started = (file: File, callId: string): Line | undefined => inCall(file, callId, 'call_started')[0];
const lastDecision = (file: File, callId: string): Line | undefined => inCall(file, callId, 'decision').at(-1);

/** Why was no alternative tried, though its tool has one? */
export const whyNoAlternative = (file: File, callId: string): string | undefined => {
  const name = text(started(file, callId), 'toolName');
  const decision = lastDecision(file, callId);
  if (list(toolOf(file, name), 'policy', 'alternatives').length === 0 || decision === undefined) return undefined;
  if (inCall(file, callId, 'alternative_used').length > 0) return undefined;
  const [code, kind] = [text(decision, 'code'), text(decision, 'error', 'kind')];
  if (code === 'guidance') return `the host's rule: ${text(decision, 'reason')}`;
  if (['blocked', 'not_permitted', 'conflict'].includes(kind)) return `it would get round a refusal: ${kind}`;
  if (text(toolOf(file, name), 'effects') === 'mutating' && at(decision, 'error', 'uncertain') === true)
    return 'it may have taken effect already';
  return code;
};

/** Which other call is to blame that this one was kept away by a breaker? */
export const keptAwayBy = (file: File, callId: string): string | undefined => {
  const [rejected] = inCall(file, callId, 'rejected');
  const start = started(file, callId);
  if (rejected === undefined || text(rejected, 'error', 'kind') !== 'circuit_open') return undefined;
  const change = of(file, 'breaker_changed').findLast(
    (line) =>
      line.seq < rejected.seq &&
      text(line, 'toolName') === text(start, 'breaker', 'key') &&
      text(line, 'scope') === text(start, 'tenant'),
  );
  const state = text(rejected, 'breakerState');
  if (state === 'half_open') return `${callOf(change)} probes`;
  if (state !== 'closed')
    return change !== undefined && 'ordered' in change ? 'an order' : `${callOf(change)} opened it`;
  const ramp = number(toolOf(file, text(start, 'toolName')), 'policy', 'breaker', 'rampMs');
  return `${callOf(change)} closed it ${rejected.atMs - (change?.atMs ?? NaN)} of ${ramp} ms ago`;
};

/** Was it cut off since it said nothing for too long, or since it took too long though it went on? */
export const silentOrSlow = (file: File, callId: string): string | undefined => {
  const failed = inCall(file, callId, 'attempt_failed').at(-1);
  const begun = inCall(file, callId, 'attempt_started').at(-1);
  const limit = number(failed, 'timeoutMs');
  if (failed === undefined || Number.isNaN(limit)) return undefined;
  if (failed.atMs >= number(begun, 'dueAtMs')) return `slow: ${limit} ms`;
  const last = inCall(file, callId, 'progress').at(-1);
  return `silent for ${failed.atMs - (last ?? begun ?? failed).atMs} ms`;
};

/** What did each node do that the deadline of its turn cut off? */
export const atDeadline = (file: File, turnId: string): string[] => {
  const deadline = of(file, 'deadline').find((line) => text(line, 'turnId') === turnId);
  return list(deadline, 'unfinished').map((nodeId) => {
    const lines = file.events.filter((line) => text(line, 'turnId') === turnId && line['nodeId'] === nodeId);
    const before = lines.filter((line) => line.seq < (deadline?.seq ?? 0) && line['source'] === 'call');
    const last = before.at(-1);
    const hooksMs = number(
      lines.find((line) => line.type === 'settled'),
      'hooksMs',
    );
    if (last === undefined) return `${String(nodeId)}: not begun`;
    const since = `for ${(deadline?.atMs ?? NaN) - last.atMs} ms`;
    if (last.type === 'attempt_started' || last.type === 'progress') return `${String(nodeId)}: ran ${since}`;
    return `${String(nodeId)}: ${hooksMs > 0 ? `its hooks had it for ${hooksMs} ms` : `${last.type} ${since}`}`;
  });
};

/** For how long did the time of a turn stand still, since a person was asked; and how long did it take in all? */
export const stoodStill = (file: File, turnId: string): { readonly held: number; readonly took: number } => {
  const lines = file.events.filter((line) => text(line, 'turnId') === turnId);
  const asked = lines.filter((line) => at(line, 'holdsTurn') === true).map((line) => text(line, 'approvalId'));
  const ends = lines.filter((line) => asked.includes(text(line, 'approvalId')) && 'waitedMs' in line);
  const [first, last] = [
    lines.find(({ type }) => type === 'turn_started'),
    lines.findLast(({ source }) => source === 'turn'),
  ];
  return {
    held: ends.reduce((sum, line) => sum + number(line, 'waitedMs'), 0),
    took: (last?.atMs ?? NaN) - (first?.atMs ?? NaN),
  };
};

/** Which other calls were given the result of this one, also in other processes? */
export const givenTo = (files: readonly File[], callId: string): string[] =>
  files.flatMap((file) =>
    of(file, 'dedupe')
      .filter((line) => text(line, 'step') === 'replayed' && text(line, 'leaderCallId') === callId)
      .map(callOf),
  );

/** Which call's failure was it given again from memory, and how old was that? */
export const rememberedFailure = (file: File, callId: string): string | undefined => {
  const replayed = inCall(file, callId, 'dedupe').find((line) => text(line, 'step') === 'replayed');
  const status = text(inCall(file, callId, 'settled')[0], 'result', 'status');
  if (replayed === undefined || status === 'success') return undefined;
  return `${text(replayed, 'leaderCallId')}, ${number(replayed, 'ageMs')} ms before`;
};

/** Which calls were ended since the layer was closed, and what may they have done? */
export const endedByClose = (file: File): string[] =>
  of(file, 'decision').flatMap((line) =>
    text(line, 'error', 'message') === 'The layer was closed'
      ? [`${callOf(line)} ${at(line, 'error', 'uncertain') === true ? 'may have run' : 'did not run'}`]
      : [],
  );

/** Whose budget was too small for it, who had spent it, and how much was left? */
export const budgetThatRefused = (file: File, callId: string): string | undefined => {
  const refused = of(file, 'budget').find((line) => callOf(line) === callId && text(line, 'step') === 'refused');
  if (refused === undefined) return undefined;
  const warned = of(file, 'budget').find(
    (line) => text(line, 'step') === 'warned' && text(line, 'scope') === text(refused, 'scope'),
  );
  const left = Math.round(number(refused, 'left') * 100) / 100;
  const [of_, unit] = [number(refused, 'limit'), text(refused, 'unit')];
  return `${text(refused, 'per')} ${text(refused, 'scope')}: ${left} of ${of_} ${unit} left after ${callOf(warned)}`;
};

/** Which calls looked into whether it took effect, when after its end, and what did they find? */
export const lookedInto = (file: File, callId: string): string[] => {
  const failed = inCall(file, callId, 'attempt_failed').at(-1);
  const looks = of(file, 'call_started').filter((line) => text(line, 'verifies') === callId);
  const [verified] = inCall(file, callId, 'verified');
  return looks.map(
    (line) => `${text(line, 'toolName')} after ${line.atMs - (failed?.atMs ?? NaN)} ms: ${text(verified, 'finding')}`,
  );
};

/** By which call was an effect undone, and how many attempts did that take? */
export const undoneBy = (file: File, callId: string): string[] =>
  of(file, 'call_started')
    .filter((line) => text(line, 'undoes') === callId)
    .map((line) => `${text(line, 'toolName')}: ${inCall(file, callOf(line), 'attempt_started').length} attempts`);

/** Whose breakers are not closed at the end of the file? */
export const notClosed = (file: File): string[] => {
  const last = new Map(
    of(file, 'breaker_changed').map((line) => [`${text(line, 'toolName')} of ${text(line, 'scope')}`, line]),
  );
  return [...last].flatMap(([whose, line]) => (text(line, 'to') === 'closed' ? [] : [`${whose}: ${text(line, 'to')}`]));
};

/** Was each of its waits the one that its policy gives, with the chance that was drawn? */
export const waitsOfPolicy = (file: File, callId: string): boolean[] =>
  inCall(file, callId, 'decision').flatMap((line) => {
    if (text(line, 'strategy') !== 'retry') return [];
    const retry = at(toolOf(file, text(line, 'toolName')), 'policy', 'retry');
    const exact = number(retry, 'initialDelayMs') * number(retry, 'multiplier') ** (number(line, 'attempt') - 1);
    const cap = Math.min(exact, number(retry, 'maxDelayMs'));
    const spread = (number(retry, 'jitterPercent') / 100) * cap * (2 * number(line, 'draw') - 1);
    return [Math.abs(cap + spread - number(line, 'delayMs')) < 0.01];
  });

/** For how long was a breaker held open by order, and how many calls did that keep away? */
export const heldByOrder = (file: File, key: string): string[] =>
  of(file, 'breaker_changed').flatMap((line, index, all) => {
    if (text(line, 'toolName') !== key || text(line, 'to') !== 'forced_open') return [];
    const next = all.slice(index + 1).find((other) => text(other, 'toolName') === key);
    const kept = of(file, 'rejected').filter(({ seq }) => seq > line.seq && seq < (next?.seq ?? Infinity));
    return [`${(next?.atMs ?? NaN) - line.atMs} ms, ${kept.length} calls`];
  });

/** Since when does a tool fail: how long before its first failure did it last succeed? */
export const lastGoodBefore = (file: File, toolName: string): number | undefined => {
  const ends = file.events.filter((line) => text(line, 'toolName') === toolName && line['source'] === 'call');
  const failed = ends.find(({ type }) => type === 'attempt_failed');
  const good = ends.findLast(({ type, seq }) => type === 'attempt_succeeded' && seq < (failed?.seq ?? -1));
  return failed === undefined || good === undefined ? undefined : failed.atMs - good.atMs;
};

/** How often did what fail, for each tenant? */
export const failuresByTenant = (file: File, toolName: string): Record<string, number> => {
  const lines = of(file, 'attempt_failed').filter((line) => text(line, 'toolName') === toolName);
  const counted = Map.groupBy(lines, (line) => {
    const tenant = text(started(file, callOf(line)), 'tenant') || 'nobody';
    return `${tenant}: ${text(line, 'error', 'kind')} ${number(line, 'error', 'status')}`;
  });
  return Object.fromEntries([...counted].map(([what, of_]) => [what, of_.length]));
};

/** For how long was a key held, by which call, and who waited for it meanwhile? */
export const keyHeld = (file: File, callId: string): { readonly ms: number; readonly waited: number } => {
  const steps = inCall(file, callId, 'dedupe');
  const claimed = steps.find((line) => text(line, 'step') === 'claimed');
  const end = steps.find((line) => ['recorded', 'released'].includes(text(line, 'step')));
  const waited = of(file, 'dedupe').filter(
    (line) => text(line, 'step') === 'waiting' && text(line, 'leaderCallId') === callId,
  );
  return { ms: (end?.atMs ?? NaN) - (claimed?.atMs ?? NaN), waited: waited.length };
};

/** Which calls ran with another input than their caller gave, by whose word? */
export const reworded = (file: File): string[] =>
  of(file, 'hook').flatMap((line) =>
    text(line, 'outcome') === 'changed' ? [`${callOf(line)} by ${text(line, 'hook')}`] : [],
  );

/** What became of the call that a model knows by its own id? */
export const ofModelCall = (file: File, toolCallId: string): string[] =>
  of(file, 'call_started')
    .filter((line) => text(line, 'toolCallId') === toolCallId)
    .map((line) => text(inCall(file, callOf(line), 'settled')[0], 'result', 'status'));

/** How long did it take, and what of that is accounted for: attempts, retries, hooks, people, keys, looks? */
export const unaccounted = (file: File, callId: string): number => {
  const lines = ofCall(file, callId);
  const sum = (type: string, field: string): number =>
    lines.reduce((total, line) => total + (line.type === type ? number(line, field) || 0 : 0), 0);
  const [end] = inCall(file, callId, 'settled');
  const waiting = lines.find((line) => text(line, 'step') === 'waiting');
  const replayed = lines.find((line) => text(line, 'step') === 'replayed');
  const forKey = waiting === undefined ? 0 : (replayed?.atMs ?? NaN) - waiting.atMs;
  const ran = ['attempt_succeeded', 'attempt_failed', 'attempt_canceled', 'verified'];
  const told = ran.reduce((total, type) => total + sum(type, 'durationMs'), 0);
  const waits = sum('decision', 'delayMs') + sum('settled', 'hooksMs') + sum('approval', 'waitedMs') + forKey;
  return number(end, 'result', 'durationMs') - told - waits;
};
