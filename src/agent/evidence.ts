import { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKind } from '../contract/error-kind.ts';
import type { ErrorReport, TraceEvent } from '../contract/event.ts';
import type { Effect } from '../policy/model-text.ts';
import type { TranscriptEvidence } from './transcript.ts';

/** What a failed attempt says about its tool. A lost connection may have been refused before anything was sent: that is not in the report. */
const effectOfFailure = ({ kind, uncertain }: ErrorReport): Effect => {
  if (uncertain === true || kind === 'transport_error' || kind === 'internal_error') return 'may_have_run';
  if (!Object.hasOwn(TOOL_ERROR_KIND_MEANINGS, kind)) return 'may_have_run';
  return TOOL_ERROR_KIND_MEANINGS[kind as ToolErrorKind].executed ? 'ran' : 'did_not_run';
};

/** Of two attempts of one call the graver counts: what may have happened in the first is not undone by the second. */
const GRAVITY: Readonly<Record<Effect, number>> = { did_not_run: 0, ran: 1, may_have_run: 2 };
const graver = (a: Effect, b: Effect): Effect => (GRAVITY[a] >= GRAVITY[b] ? a : b);

/**
 * Reads from a stored trace what became of calls, by the id that the model gave them: for `repairTranscript` after a crash. A call counts as not
 * run only when the trace saw it refused or ended without an attempt: one that the trace does not know, or does not see ended, may have run. So
 * may one whose id was another call's as well, as in two runs on one layer, unless both came to the same.
 *
 * @param events of `spillway.trace$`, in order; events without a call are passed over
 *
 * @example
 * const seen: TraceEvent[] = [];
 * spillway.trace$.subscribe((event) => seen.push(event));
 * repairTranscript([], evidenceFromTrace(seen));
 */
export function evidenceFromTrace(events: Iterable<TraceEvent>): TranscriptEvidence {
  const calls = new Map<string, { readonly toolCallId: string; effect: Effect; running: boolean; known: Effect }>();
  for (const event of events) {
    if (event.source !== 'call') continue;
    if (event.type === 'call_started' && event.toolCallId !== undefined) calls.set(event.callId, { toolCallId: event.toolCallId, effect: 'did_not_run', running: false, known: 'may_have_run' });
    const call = calls.get(event.callId);
    if (call === undefined) continue;
    switch (event.type) {
      case 'attempt_started':
        call.running = true;
        break;
      case 'attempt_succeeded':
      case 'attempt_failed':
      case 'attempt_canceled': {
        call.running = false;
        const effect = event.type === 'attempt_failed' ? effectOfFailure(event.error) : event.type === 'attempt_succeeded' ? 'ran' : 'may_have_run';
        // A success settles what earlier attempts left open.
        call.effect = event.type === 'attempt_succeeded' ? effect : graver(call.effect, effect);
        break;
      }
      default:
        break;
    }
    const isOver = event.type === 'settled' || event.type === 'abandoned' || event.type === 'attempt_succeeded' || event.type === 'rejected';
    call.known = isOver && !call.running ? call.effect : 'may_have_run';
  }
  const evidence = new Map<string, Effect>();
  for (const { toolCallId, known } of calls.values()) evidence.set(toolCallId, (evidence.get(toolCallId) ?? known) === known ? known : 'may_have_run');
  return evidence;
}
