import { EMPTY } from 'rxjs';
import type { WorkerReport } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { redisChanges } from '../../stores/redis/changes.ts';
import { redisCommands, type RedisClientLike, type RedisSubscriberLike } from '../../stores/redis/client.ts';
import { redisLink } from '../../stores/redis/link.ts';
import { listOf, numberOf, textOf } from '../../stores/redis/record.ts';
import type { Begun, Entered, LedgerPage, LedgerReport, Taking, TurnLedger } from '../ledger.ts';
import { BEAT, BEGIN, CANCEL, ENTER, LEAVE, OWNS, READ, REPORT, WRITE } from './scripts.ts';

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
  const [state, settled, deadline, backlog] = texts(answer);
  if (state === 'conflict') return { state };
  if (state === 'full') return { state, open: Number(settled) };
  return {
    state: state === 'known' ? 'known' : 'accepted',
    isSettled: settled === '1',
    deadlineAtMs: Number(deadline),
    backlog: Number(backlog),
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
    nowMs: numberOf(nowMs),
    deadlineAtMs: Number(fields.get('deadline')),
    record: fields.get('record') ?? '',
    seq: Number(fields.get('seq')),
    isCancelled: fields.has('cancelled'),
    ...(before === '' ? {} : { before: { worker: before, aliveAtMs: numberOf(aliveAtMs) } }),
    nodes: new Map(under('n:')),
    decisions: new Map(under('d:').map(([id, value]) => [id, timed(value)])),
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
export function redisLedger(client: RedisClientLike, options: RedisLedgerOptions): TurnLedger {
  const { name, subscriber, keepMs, maxEvents, commandTimeoutMs, runtime } = options;
  const commands = redisCommands(client);
  const link = redisLink(commands, commandTimeoutMs, runtime);
  const run: typeof link.run = (...asked) => link.run(...asked);
  const channels = subscriber === undefined ? undefined : redisChanges(subscriber);
  const key = (rest: string): string => `{${name}}:${rest}`;
  const turnKey = (turnId: string): string => key(`turn:${turnId}`);
  const eventsKey = (turnId: string): string => key(`events:${turnId}`);
  const tenantKey = (tenant: string): string => key(`tenant:${tenant}`);
  const [open, waiting, workers, versions, info, cancelled, orders] = [
    'open',
    'waiting',
    'workers',
    'versions',
    'info',
    'cancelled',
    'orders',
  ].map(key) as [string, string, string, string, string, string, string];
  return {
    enter: async ({ turnId, digest, record, tenant, timeoutMs, submission }, maxOpen) =>
      enteredOf(
        await run(
          'The turn could not be handed over',
          ENTER,
          [turnKey(turnId), open, waiting, tenantKey(tenant)],
          [turnId, digest, record, tenant, timeoutMs, submission, maxOpen, keepMs].map(String),
        ),
      ),
    begin: async (turnId, worker, version, evenSo) => {
      const keys = [turnKey(turnId), waiting, workers, versions];
      return takingOf(
        await run('The turn could not be begun', BEGIN, keys, [turnId, worker, version, evenSo ? '1' : '0']),
      );
    },
    write: async (turnId, epoch, { events, firstSeq, nodes, decisions, settles, tenant }) => {
      const keys = [turnKey(turnId), eventsKey(turnId), open, waiting, tenantKey(tenant), cancelled];
      const head = [turnId, epoch, eventsKey(turnId), firstSeq, events.length, settles ? 1 : 0, keepMs, maxEvents];
      const fields = [
        ...nodes.flatMap(([id, entry]) => [`n:${id}`, entry]),
        ...decisions.flatMap(([id, decision]) => [`d:${id}`, `@${decision}`]),
      ];
      const answer = await run('The turn could not be written', WRITE, keys, [
        ...head.map(String),
        ...events,
        ...fields,
      ]);
      return numberOf(answer) === 1;
    },
    owns: async (turnId, epoch) =>
      numberOf(await run('The turn could not be asked for', OWNS, [turnKey(turnId)], [String(epoch)])) === 1,
    read: async (turnId, afterSeq, count) =>
      pageOf(
        await run(
          'The events could not be read',
          READ,
          [turnKey(turnId), eventsKey(turnId)],
          [String(afterSeq), String(count)],
        ),
      ),
    changes: (turnId) => channels?.changes(eventsKey(turnId)) ?? EMPTY,
    cancel: async (turnId) =>
      numberOf(await run('The turn could not be cancelled', CANCEL, [turnKey(turnId), cancelled], [turnId, orders])) ===
      1,
    orders$: channels?.changes(orders) ?? EMPTY,
    beat: async (worker, version, turns) =>
      texts(
        await run(
          'The worker could not be noted',
          BEAT,
          [workers, versions, info, cancelled],
          [worker, version, `${turns} ${version}`, String(SILENT_MS)],
        ),
      ),
    leave: async (worker) => {
      await run('The worker could not be taken off', LEAVE, [workers, info], [worker]);
    },
    report: async () =>
      reportOf(
        await run(
          'The fleet could not be asked for',
          REPORT,
          [open, waiting, workers, info],
          [OVERDUE_MS, OVERDUE_MAX, SILENT_MS].map(String),
        ),
      ),
    close: () => channels?.close(),
  };
}
