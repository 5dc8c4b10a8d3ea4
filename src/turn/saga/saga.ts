import { AsyncSubject, catchError, defer, ignoreElements, map, of, throwError, type Observable } from 'rxjs';
import type { Journal, JournalEntry } from '../../contract/settle/journal.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import type { CallContext, CallJournal } from '../../call/context.ts';
import { keyOf } from '../../call/idempotency.ts';
import type { CallOutcome } from '../../call/result.ts';
import { nodeCompensation, type Undoing } from '../../layer/settle/compensation.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { Layer } from '../../layer/services.ts';
import { forkJoinAll } from '../../operators/work/join-tree.ts';
import type { StopWatch } from '../../operators/work/stop-watch.ts';
import { DEDUPE_DEFAULTS } from '../../policy/profile.ts';
import type { Plan } from '../plan.ts';
import { JournalRecord } from './record.ts';

/** A call of the turn that may have to be undone. */
interface KeptCall {
  readonly entry: JournalEntry;
  readonly ended$: AsyncSubject<void>;
  /** Its input as its tool had it. */
  readonly input: unknown;
  /** What its tool gave, whatever that is. */
  output?: { readonly value: unknown };
  /** The work of its last attempt, which may go on. */
  work?: StopWatch | undefined;
}

/** How a call is undone: as its node says, else as its tool does. */
export const undoingOf = ({ nodes }: Plan, nodeId: string, guarded: GuardedTool): Undoing | false | undefined => {
  const own = nodes.find(({ id }) => id === nodeId)?.compensate;
  return own === undefined ? guarded.compensate : nodeCompensation(own, guarded.compensate);
};

/** What one turn did that may have to be undone. */
export class Saga implements CallJournal {
  readonly record: JournalRecord;
  readonly #plan: Plan;
  readonly #layer: Layer;
  readonly #calls = new Map<string, KeptCall>();
  /** By node. */
  readonly #entries = new Map<string, JournalEntry>();
  readonly #places: ReadonlyMap<string, number>;

  constructor(layer: Layer, plan: Plan, turn: Pick<Journal, 'turnId' | 'session' | 'actor' | 'tenant'>) {
    const { name, leaseMs = DEDUPE_DEFAULTS.leaseMs } = plan.options;
    const journal: Journal = {
      version: 1,
      ...turn,
      ...(name === undefined ? {} : { plan: name }),
      state: 'running',
      entries: [],
    };
    this.#layer = layer;
    this.#plan = plan;
    this.#places = new Map(plan.nodes.map(({ id }, place) => [id, place]));
    this.record = new JournalRecord(layer, journal, leaseMs);
  }

  begins(context: CallContext, guarded: GuardedTool): Observable<void> | undefined {
    const { nodeId = '' } = context.call;
    if (!this.#acts(guarded) || undoingOf(this.#plan, nodeId, guarded) === false) return undefined;
    const entry = this.#entryOf(context, guarded, nodeId);
    const kept: KeptCall = { entry, ended$: new AsyncSubject<void>(), input: context.input };
    this.#calls.set(context.call.callId, kept);
    this.#entries.set(nodeId, entry);
    this.record.journal.entries.push(entry);
    return this.record.written().pipe(
      catchError((error: unknown) => {
        // Nothing has begun.
        entry.state = 'not_done';
        return throwError(() => unkept(error));
      }),
    );
  }

  holds(): boolean {
    return this.record.holds();
  }

  ends(context: CallContext, outcome?: CallOutcome): void {
    const kept = this.#calls.get(context.call.callId);
    if (kept === undefined) return;
    const { entry } = kept;
    kept.work = context.toolInUse?.work;
    const error = outcome?.result.error;
    if (outcome !== undefined && error === undefined) {
      entry.state = 'done';
      entry.toolName = outcome.result.toolName;
      entry.output = outcome.result.output?.content;
      kept.output = { value: entry.output };
    } else if (entry.state === 'begun' && isCertain(context, outcome)) entry.state = 'not_done';
    // Not waited for: until the store has it, another process would find it out by asking.
    this.record
      .written()
      .pipe(catchError(() => of(undefined)))
      .subscribe();
    kept.ended$.next();
    kept.ended$.complete();
  }

  /** Completes once every call that began is over. */
  ended(): Observable<never> {
    return defer(() => forkJoinAll([...this.#calls.values()].map(({ ended$ }) => ended$))).pipe(ignoreElements());
  }

  /** What is known in this process alone. */
  live({ callId }: JournalEntry): Pick<KeptCall, 'input' | 'output' | 'work'> | undefined {
    return this.#calls.get(callId);
  }

  get hasBegun(): boolean {
    return this.#calls.size > 0;
  }

  /** It settled well: emits whether the store knows that there is nothing to undo. */
  completed(): Observable<boolean> {
    if (!this.hasBegun) return of(true);
    if (this.record.isLost) return of(false);
    this.record.journal.state = 'completed';
    return this.record.written().pipe(
      map(() => true),
      catchError(() => of(false)),
    );
  }

  #acts({ effects, alternatives }: GuardedTool): boolean {
    return effects !== 'read' || alternatives.some((name) => this.#layer.registry.get(name)?.effects === 'mutating');
  }

  #entryOf(context: CallContext, guarded: GuardedTool, nodeId: string): JournalEntry {
    const { call, callKey } = context;
    const key = keyOf(context, guarded);
    return {
      id: nodeId,
      toolName: guarded.tool.name,
      callId: call.callId,
      callKey,
      ...(key === undefined ? {} : { recordKey: key.key }),
      input: call.input,
      after: this.#before(nodeId),
      ...(this.#plan.nodes[this.#places.get(nodeId) ?? -1]?.compensate === undefined ? {} : { own: true }),
      state: 'begun',
    };
  }

  /** The nearest calls before a node that are kept: through nodes that only read, to what they need. */
  #before(nodeId: string): string[] {
    const { needs, nodes } = this.#plan;
    const found = new Set<string>();
    const queue = [...(needs[this.#places.get(nodeId) ?? -1] ?? [])];
    const seen = new Set(queue);
    // Grows while it is walked.
    for (const place of queue) {
      const id = nodes[place]?.id ?? '';
      if (this.#entries.has(id)) found.add(id);
      else
        for (const need of needs[place] ?? []) {
          if (seen.has(need)) continue;
          seen.add(need);
          queue.push(need);
        }
    }
    return [...found];
  }
}

/** Whether a call that did not succeed is known to have done nothing. */
const isCertain = ({ attempts, uncertain, executed }: CallContext, outcome: CallOutcome | undefined): boolean => {
  if (attempts === 0) return !uncertain;
  if (outcome === undefined) return !executed;
  return !uncertain && outcome.result.error?.uncertain !== true;
};

const unkept = (thrown: unknown): ToolExecutionError => {
  const { message, classification } = toToolExecutionError(thrown);
  const why = `Nothing was run, since it could not be kept for undoing it: ${message}`;
  return new ToolExecutionError('store_unavailable', why, { executed: false, classification });
};
