import { EMPTY, type Observable } from 'rxjs';
import type { WorkerReport } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { redisChanges, type RedisChanges } from '../../stores/redis/changes.ts';
import { redisCommands, type RedisClientLike, type RedisSubscriberLike } from '../../stores/redis/client.ts';
import { redisLink, type RedisLink } from '../../stores/redis/link.ts';
import { listOf, numberOf, textOf } from '../../stores/redis/record.ts';
import type { Script } from '../../stores/redis/scripts.ts';
import type {
  Begun,
  Entered,
  HeldState,
  HeldTurn,
  LedgerBatch,
  LedgerEntry,
  LedgerPage,
  LedgerReport,
  Taking,
  TurnLedger,
} from '../ledger.ts';
import { BEAT, BEGIN, CANCEL, ENTER, LEAVE, OWNS, READ, REPORT, WRITE, YIELD } from './scripts.ts';

/** A turn counts as stuck from so long after its deadline on: by then it should have been harvested. */
const OVERDUE_MS = 10_000;
const OVERDUE_MAX = 100;
/** A worker that was not heard of for so long is no longer listed. */
const SILENT_MS = 30_000;

/** Where a ledger lies, and what it keeps. */
export interface RedisLedgerOptions {
  readonly name: string;
  readonly subscriber: RedisSubscriberLike | undefined;
  readonly keepMs: number;
  readonly maxEvents: number;
  readonly commandTimeoutMs: number;
  readonly runtime: Runtime;
}

const texts = (value: unknown): string[] => listOf(value).map((item) => textOf(item) ?? '');
const pairs = (value: unknown): Array<readonly [string, string]> => {
  const flat = texts(value);
  return flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ''] as const] : []));
};

const enteredOf = (answer: unknown): Entered => {
  const [state, settled, deadline, place, submission = ''] = texts(answer);
  if (state === 'conflict') return { state };
  if (state === 'full') return { state, open: Number(settled) };
  return {
    state: state === 'known' ? 'known' : 'accepted',
    isSettled: settled === '1',
    deadlineAtMs: Number(deadline),
    place: Number(place),
    submission,
  };
};

const timed = (text: string): { readonly decision: string; readonly atMs: number } => {
  const [atMs = ''] = text.split(' ', 1);
  return { atMs: Number(atMs), decision: text.slice(atMs.length + 1) };
};

const begunOf = ([, epoch, nowMs, worker, aliveAtMs, hash]: readonly unknown[]): Begun => {
  const fields = new Map(pairs(hash));
  const under = (prefix: string): Array<[string, string]> =>
    [...fields].flatMap(([name, value]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : []));
  const before = textOf(worker) ?? '';
  return {
    state: 'begun',
    epoch: numberOf(epoch),
    submission: fields.get('submission') ?? '',
    tries: Number(fields.get('tries')),
    nowMs: numberOf(nowMs),
    deadlineAtMs: Number(fields.get('deadline')),
    record: fields.get('record') ?? '',
    seq: Number(fields.get('seq')),
    isCancelled: fields.has('cancelled'),
    ...(before === '' ? {} : { before: { worker: before, aliveAtMs: numberOf(aliveAtMs) } }),
    lastWords: new Map(under('u:').map(([of, atMs]) => [Number(of), Number(atMs)])),
    nodes: new Map(under('n:')),
    decisions: new Map(under('d:').map(([id, value]) => [id, timed(value)])),
    told: new Map(under('t:')),
  };
};

const takingOf = (answer: unknown): Taking => {
  const list = listOf(answer);
  const state = textOf(list[0]);
  if (state === 'begun') return begunOf(list);
  if (state !== 'other_version') return { state: state === 'settled' ? 'settled' : 'unknown' };
  const [, version = '', silentMs, deadlineAtMs, nowMs] = texts(answer);
  return {
    state,
    version,
    silentMs: Number(silentMs),
    deadlineAtMs: Number(deadlineAtMs),
    nowMs: Number(nowMs),
  };
};

const pageOf = (answer: unknown): LedgerPage => {
  const [known, settled, events] = listOf(answer);
  return {
    isKnown: numberOf(known) === 1,
    isSettled: numberOf(settled) === 1,
    events: listOf(events).map((entry) => {
      const [id, fields] = listOf(entry);
      return { seq: Number.parseInt(textOf(id) ?? '', 10), event: texts(fields)[1] ?? '' };
    }),
  };
};

const workerOf = (entry: unknown): WorkerReport => {
  const [worker = '', silentMs, report = ''] = texts(entry);
  const [turns = '0', ...version] = report.split(' ');
  return { worker, silentMs: Math.max(0, Number(silentMs)), turns: Number(turns), version: version.join(' ') };
};

const reportOf = (answer: unknown): LedgerReport => {
  const [now, open, waiting, oldest, overdue, workers] = listOf(answer);
  const nowMs = numberOf(now);
  return {
    waiting: numberOf(waiting),
    running: Math.max(0, numberOf(open) - numberOf(waiting)),
    lagMs: Math.max(0, nowMs - numberOf(oldest)),
    overdue: pairs(overdue).map(([turnId, deadline]) => ({ turnId, overdueMs: nowMs - Number(deadline) })),
    workers: listOf(workers).map(workerOf),
  };
};

/**
 * A ledger in Redis 6.2 or later. All of its keys have one hash tag, so that a cluster keeps them together: a fleet
 * that outgrows one server is several fleets of different names.
 */
export class RedisLedger implements TurnLedger {
  readonly orders$: Observable<unknown>;
  readonly #options: RedisLedgerOptions;
  readonly #link: RedisLink;
  readonly #channels: RedisChanges | undefined;

  constructor(client: RedisClientLike, options: RedisLedgerOptions) {
    const { subscriber, commandTimeoutMs, runtime } = options;
    this.#options = options;
    this.#link = redisLink(redisCommands(client), commandTimeoutMs, runtime);
    this.#channels = subscriber === undefined ? undefined : redisChanges(subscriber);
    this.orders$ = this.#channels?.changes(this.#key('orders')) ?? EMPTY;
  }

  async enter(entry: LedgerEntry, maxOpen: number): Promise<Entered> {
    const { turnId, digest, record, tenant, timeoutMs, submission } = entry;
    const keys = [
      this.#turn(turnId),
      this.#key('open'),
      this.#key('waiting'),
      this.#tenant(tenant),
      this.#key('places'),
    ];
    const given = [turnId, digest, record, tenant, timeoutMs, submission, maxOpen, this.#options.keepMs];
    return enteredOf(await this.#run('The turn could not be handed over', ENTER, keys, given));
  }

  async begin(turnId: string, worker: string, version: string, evenSo: boolean, once: string): Promise<Taking> {
    const keys = [this.#turn(turnId), ...['waiting', 'versions', 'places'].map((rest) => this.#key(rest))];
    const given = [turnId, worker, version, evenSo ? 1 : 0, once];
    return takingOf(await this.#run('The turn could not be begun', BEGIN, keys, given));
  }

  async write(turnId: string, epoch: number, batch: LedgerBatch): Promise<boolean> {
    const { events, firstSeq, nodes, decisions, told, settles, tenant } = batch;
    const { keepMs, maxEvents } = this.#options;
    const stream = this.#events(turnId);
    const lists = [this.#key('open'), this.#key('waiting'), this.#tenant(tenant)];
    const further = nodes.length + decisions.length > 0 ? 1 : 0;
    const head = [turnId, epoch, stream, firstSeq, events.length, settles ? 1 : 0, keepMs, maxEvents, further];
    const fields = [
      ...nodes.flatMap(([id, entry]) => [`n:${id}`, entry]),
      ...decisions.flatMap(([id, decision]) => [`d:${id}`, `@${decision}`]),
      ...told.flatMap(([what, how]) => [`t:${what}`, how]),
    ];
    const given = [...head, ...events, ...fields];
    return (
      numberOf(
        await this.#run('The turn could not be written', WRITE, [this.#turn(turnId), stream, ...lists], given),
      ) === 1
    );
  }

  async owns(turnId: string, epoch: number): Promise<boolean> {
    return numberOf(await this.#run('The turn could not be asked for', OWNS, [this.#turn(turnId)], [epoch])) === 1;
  }

  async yields(turnId: string, epoch: number): Promise<void> {
    await this.#run('The turn could not be given back', YIELD, [this.#turn(turnId)], [epoch]);
  }

  async read(turnId: string, afterSeq: number, count: number): Promise<LedgerPage> {
    const keys = [this.#turn(turnId), this.#events(turnId)];
    return pageOf(await this.#run('The events could not be read', READ, keys, [afterSeq, count]));
  }

  changes(turnId: string): Observable<unknown> {
    return this.#channels?.changes(this.#events(turnId)) ?? EMPTY;
  }

  async cancel(turnId: string): Promise<boolean> {
    const keys = [this.#turn(turnId)];
    return numberOf(await this.#run('The turn could not be cancelled', CANCEL, keys, [this.#key('orders')])) === 1;
  }

  async beat(worker: string, version: string, turns: number, held: readonly HeldTurn[]): Promise<HeldState[]> {
    const lists = ['workers', 'versions', 'info', 'open'].map((rest) => this.#key(rest));
    const keys = [...lists, ...held.map(({ turnId }) => this.#turn(turnId))];
    const turnsOf = held.flatMap(({ turnId, epoch, undoes }) => [epoch, undoes ? turnId : '']);
    const given = [worker, version, `${turns} ${version}`, SILENT_MS, ...turnsOf];
    const states = texts(await this.#run('The worker could not be noted', BEAT, keys, given));
    return states.map((state) => (state === 'held' || state === 'cancelled' ? state : 'taken'));
  }

  async leave(worker: string): Promise<void> {
    await this.#run('The worker could not be taken off', LEAVE, [this.#key('workers'), this.#key('info')], [worker]);
  }

  async report(): Promise<LedgerReport> {
    const keys = ['open', 'waiting', 'workers', 'info'].map((rest) => this.#key(rest));
    const given = [OVERDUE_MS, OVERDUE_MAX, SILENT_MS];
    return reportOf(await this.#run('The fleet could not be asked for', REPORT, keys, given));
  }

  close(): void {
    this.#channels?.close();
  }

  #run(doing: string, script: Script, keys: readonly string[], given: readonly (string | number)[]): Promise<unknown> {
    return this.#link.run(doing, script, keys, given.map(String));
  }

  #key(rest: string): string {
    return `{${this.#options.name}}:${rest}`;
  }

  #turn(turnId: string): string {
    return this.#key(`turn:${turnId}`);
  }

  #events(turnId: string): string {
    return this.#key(`events:${turnId}`);
  }

  #tenant(tenant: string): string {
    return this.#key(`tenant:${tenant}`);
  }
}
