import type { JournalEntry } from '../contract/settle/journal.ts';
import type { Compensation, LeftBehind } from '../contract/turn.ts';
import { sha256 } from '../policy/key/sha256.ts';
import type { TurnBody } from '../layer/trace.ts';

const FINGERPRINT_CHARS = 16;

/** As the events of its call name it; an id is no secret. */
const fingerprint = (callKey: string, entries: readonly JournalEntry[]): string => {
  const entry = entries.find((other) => other.callKey === callKey);
  if (entry?.callId === callKey) return callKey;
  return (
    entry?.recordKey?.slice('sw1:'.length).slice(0, FINGERPRINT_CHARS) ?? sha256(callKey).slice(0, FINGERPRINT_CHARS)
  );
};

const shown = ({ stays, ...compensation }: Compensation, entries: readonly JournalEntry[]): Compensation => ({
  ...compensation,
  stays: stays.map((left) => ({ ...left, callKey: fingerprint(left.callKey, entries) })),
});

/** An event as the trace may have it: the keys of what stays are for the caller, and the trace has fingerprints. */
export const withoutKeys = (event: TurnBody, entries: readonly JournalEntry[]): TurnBody => {
  if (event.type === 'compensation_settled' && event.compensation.stays.length > 0)
    return { ...event, compensation: shown(event.compensation, entries) };
  if (event.type !== 'settled') return event;
  const { compensation } = event.result;
  if (compensation === undefined || compensation.stays.length === 0) return event;
  return { ...event, result: { ...event.result, compensation: shown(compensation, entries) } };
};

/** Nothing is undone on the word of a damaged record, and nothing that may stay goes untold. */
export const unreadable = (turnId: string): LeftBehind => ({
  id: '',
  toolName: '',
  callKey: '',
  why: `the journal of the turn ${turnId} is damaged, or of another version, and cannot be read`,
  owner: 'a person',
});
