import {
  AsyncSubject,
  catchError,
  defer,
  ignoreElements,
  map,
  of,
  switchMap,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { DedupeRecord } from '../contract/store.ts';
import type { Compensation, LeftBehind, Plan } from '../contract/turn.ts';
import { resourceKey } from '../call/attempt/tool-context.ts';
import type { CallContext } from '../call/context.ts';
import { keyOf } from '../call/idempotency.ts';
import { givenIn } from '../call/replay.ts';
import type { CallOutcome } from '../call/result.ts';
import type { CallJournal } from '../call/undo-log.ts';
import { nodeCompensation, type Undoing } from '../layer/settle/compensation.ts';
import type { GuardedTool } from '../layer/registry.ts';
import type { Layer } from '../layer/services.ts';
import { forkJoinAll } from '../operators/work/join-tree.ts';
import type { StopWatch } from '../operators/work/stop-watch.ts';
import { DEDUPE_DEFAULTS } from '../policy/profile.ts';
import { isOpen } from '../policy/settle/undo-order.ts';
import { isCertain, isRefused } from './certain.ts';
import { given } from '../policy/check.ts';
import { nearestBefore } from './nearest-before.ts';
import { JournalRecord } from './record.ts';
import { unreadable } from './shown.ts';
import type { LiveCall } from './undo.ts';

/** A call of the turn that may have to be undone. */
interface KeptCall {
  readonly entry: JournalEntry;
  readonly ended$: AsyncSubject<void>;
  /** The tool that was asked for, and the input as that tool had it. */
  readonly asked: { readonly toolName: string; readonly input: unknown };
  readonly context: CallContext;
  /** It got the result of another call, and relies on that. */
  relies?: true;
  /** Others waited for its key when it ended: they may rely on what it did. */
  wasAwaited?: boolean;
  /** What its tool gave, whatever that is. */
  output?: { readonly value: unknown };
  /** The work of its attempts at the tool that it used last, which may go on. */
  used?: { readonly toolName: string; readonly work: StopWatch | undefined };
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
  readonly #live = new Map<JournalEntry, KeptCall>();
  /** By node. */
  readonly #entries = new Map<string, JournalEntry>();
  readonly #places: ReadonlyMap<string, number>;
  /** Calls that go straight through to their tools. */
  readonly #passing = new Set<CallContext>();
  readonly #passed: LeftBehind[] = [];
  /** The undoing, once it has begun: there is one, whoever asks for it. */
  compensation$: Observable<Compensation> | undefined;

  constructor(
    layer: Layer,
    plan: Plan,
    turn: Pick<Journal, 'turnId' | 'session' | 'actor' | 'tenant'>,
    engine?: TurnJournal,
  ) {
    const { name, leaseMs = DEDUPE_DEFAULTS.leaseMs } = plan.options;
    const journal: Journal = {
      version: 2,
      writer: '',
      owner: layer.runtime.id(),
      ...turn,
      ...given({ plan: name, submission: engine?.submission }),
      state: 'running',
      pages: 0,
      entries: [],
    };
    this.#layer = layer;
    this.#plan = plan;
    this.#places = new Map(plan.nodes.map(({ id }, place) => [id, place]));
    this.record = new JournalRecord(layer, journal, leaseMs, engine);
    // Nothing of it may go on here; also not what its deadline has detached.
    this.record.lost$.subscribe(() => {
      for (const { context } of this.#calls.values()) if (!context.hasLeft) context.cancel();
    });
  }

  get owner(): string {
    return this.record.journal.owner;
  }

  begins(context: CallContext, guarded: GuardedTool): Observable<void> | undefined {
    const { nodeId = '' } = context.call;
    if (!this.#acts(guarded) || undoingOf(this.#plan, nodeId, guarded) === false) return undefined;
    const entry = this.#entryOf(context, guarded, nodeId);
    this.#keep(context, entry);
    return this.record.written(entry).pipe(
      catchError((error: unknown) => {
        // Nothing has begun.
        entry.state = 'not_done';
        this.record.touch(entry);
        return throwError(() => unkept(error));
      }),
    );
  }

  passes(context: CallContext, guarded: GuardedTool): void {
    if (this.#acts(guarded) && undoingOf(this.#plan, context.call.nodeId ?? '', guarded) !== false)
      this.#passing.add(context);
  }

  relies(context: CallContext, guarded: GuardedTool, record: DedupeRecord): Observable<void> {
    const { nodeId = '', callId } = context.call;
    if (undoingOf(this.#plan, nodeId, guarded) === false) return of(undefined);
    const kept = this.#calls.get(callId) ?? this.#keep(context, this.#entryOf(context, guarded, nodeId));
    const { entry } = kept;
    kept.relies = true;
    entry.callId = record.request.requestId;
    entry.recordKey = record.key;
    entry.state = 'begun';
    Object.assign(entry, givenIn(record));
    return this.record.written(entry).pipe(catchError((error: unknown) => throwError(() => unkept(error))));
  }

  holds(): boolean {
    return this.record.holds();
  }

  ends(context: CallContext, outcome?: CallOutcome): void {
    if (this.#passing.delete(context)) this.#pass(context, outcome);
    const kept = this.#calls.get(context.call.callId);
    if (kept === undefined) return;
    const { entry } = kept;
    kept.used = { toolName: context.toolName, work: context.toolInUse?.work };
    kept.wasAwaited = context.hasLeft || context.lease?.waitedFor === true;
    const error = outcome?.result.error;
    if (outcome !== undefined && error === undefined) {
      entry.state = 'done';
      entry.toolName = outcome.result.toolName;
      entry.output = outcome.result.output?.content;
      kept.output = { value: entry.output };
    } else if (
      entry.state === 'begun' &&
      (kept.relies === true ? isRefused(context, error) : isCertain(context, outcome))
    )
      entry.state = 'not_done';
    // Not waited for: until the store has it, another process would find it out by asking.
    this.record
      .written(entry)
      .pipe(catchError(() => of(undefined)))
      .subscribe();
    kept.ended$.next();
    kept.ended$.complete();
  }

  /** Completes once every call that began is over. */
  ended(): Observable<never> {
    return defer(() => forkJoinAll([...this.#calls.values()].map(({ ended$ }) => ended$))).pipe(ignoreElements());
  }

  /** What this process alone knows of a call and one of its tools: an alternative reads the input in its own way. */
  live(entry: JournalEntry, toolName: string): LiveCall {
    const { asked, used, output, wasAwaited } = this.#live.get(entry) ?? {};
    return given({
      input: asked?.toolName === toolName ? { value: asked.input } : undefined,
      output,
      work: used?.toolName === toolName ? used.work : undefined,
      wasAwaited,
    });
  }

  /** Whether any of its calls may have to be undone, here or in an earlier process of the turn. */
  get hasBegun(): boolean {
    return this.record.journal.entries.length > 0;
  }

  /**
   * Goes on with what an earlier process of the turn has kept, which a call that begins here finds on its way. Emits
   * once that is known.
   * @throws ToolExecutionError (as the stream's error) where it is not to be had
   */
  adopted(): Observable<unknown> {
    const { record } = this;
    const found$: Observable<unknown> = this.hasBegun
      ? record.written()
      : record.held().pipe(
          switchMap(() => record.adopted()),
          tap((found) => (found === 'damaged' ? this.lacks() : undefined)),
        );
    return found$.pipe(tap(() => this.#reorder()));
  }

  /** What earlier processes did is not to be had: a person has to look. */
  lacks(): void {
    this.#passed.push(unreadable(this.record.journal.turnId));
  }

  /** Each process has seen only its own calls when they began: together they may build on each other. */
  #reorder(): void {
    const { entries } = this.record.journal;
    this.#entries.clear();
    for (const entry of entries) {
      const earlier = this.#entries.get(entry.id);
      // One that has done nothing says nothing of those before it.
      if (earlier !== undefined && entry.state === 'not_done') continue;
      if (earlier !== undefined && isOpen(earlier)) this.#join(earlier, entry);
      this.#entries.set(entry.id, entry);
    }
    for (const entry of entries) entry.after = nearestBefore(this.#plan, this.#places, this.#entries, entry.id);
  }

  /** The same effect, which a later process was told of under its key, or began once more, which the key forbids. */
  #join(earlier: JournalEntry, entry: JournalEntry): void {
    const { state, output, toolName, callId } = earlier;
    if (callId !== entry.callId && !(isOpen(entry) && (state === 'begun' || toolName === entry.toolName))) return;
    if (entry.state === 'begun') Object.assign(entry, { state, output });
    earlier.state = 'not_done';
    this.record.touch(earlier);
    this.record.touch(entry);
  }

  /** It settled well: emits whether the store knows that there is nothing to undo. */
  completed(): Observable<boolean> {
    this.record.journal.state = 'completed';
    return this.record.written().pipe(
      map(() => true),
      catchError(() => of(false)),
    );
  }

  /** What went straight through to its tools, and stays: nothing is undone of it. */
  get passed(): readonly LeftBehind[] {
    return this.#passed;
  }

  #pass(context: CallContext, outcome: CallOutcome | undefined): void {
    const { call, toolName } = context;
    const isDone = outcome !== undefined && outcome.result.error === undefined;
    if (!isDone && isCertain(context, outcome)) return;
    const what = isDone ? 'did' : 'may have done';
    const why = `the layer is off or in shadow mode for ${toolName}, and undoes nothing that it ${what}`;
    this.#passed.push({ id: call.nodeId ?? '', toolName, callKey: resourceKey(context), why, owner: 'a person' });
  }

  #keep(context: CallContext, entry: JournalEntry): KeptCall {
    const asked = { toolName: entry.toolName, input: context.input };
    const kept: KeptCall = { entry, ended$: new AsyncSubject<void>(), asked, context };
    this.#calls.set(context.call.callId, kept);
    this.#live.set(entry, kept);
    this.#entries.set(entry.id, entry);
    this.record.journal.entries.push(entry);
    return kept;
  }

  #acts({ effects, alternatives }: GuardedTool): boolean {
    return effects !== 'read' || alternatives.some((name) => this.#layer.registry.get(name)?.effects === 'mutating');
  }

  #entryOf(context: CallContext, guarded: GuardedTool, nodeId: string): JournalEntry {
    const { call } = context;
    const key = keyOf(context, guarded);
    return given({
      id: nodeId,
      toolName: guarded.tool.name,
      callId: call.callId,
      callKey: resourceKey(context),
      recordKey: key?.key,
      input: call.input,
      after: nearestBefore(this.#plan, this.#places, this.#entries, nodeId),
      own: this.#plan.nodes[this.#places.get(nodeId) ?? -1]?.compensate === undefined ? undefined : true,
      state: 'begun',
    }) as JournalEntry;
  }
}

const unkept = (thrown: unknown): ToolExecutionError => {
  const error = toToolExecutionError(thrown);
  const { message, classification } = error;
  if (error.kind === 'conflict') return error;
  const why = `Nothing was run, since it could not be kept for undoing it: ${message}`;
  return new ToolExecutionError('store_unavailable', why, { executed: false, classification });
};
