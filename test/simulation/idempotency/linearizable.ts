import type { DedupeReading, DedupeRecord } from '../../../src/contract/store.ts';
import type { Asked } from './history.ts';
import type { StoreAnswer } from './store-model.ts';

/** A time that is known, or known to lie between two. */
type Span = readonly [fromMs: number, toMs: number];

/** What a key may hold, as far as answers have told. */
interface Held {
  /** Unknown for a write whose answer was lost, until somebody reads it. */
  readonly version: number | undefined;
  readonly state: DedupeRecord['state'];
  readonly requestId: string;
  readonly payload: string | undefined;
  readonly lock: Span;
  readonly expires: Span;
}

interface World {
  readonly held: Held | undefined;
  /** The highest version that was seen: those to come are above it. */
  readonly fence: number;
  readonly atMs: number;
}

/** States that the search may look at. Histories here are short, and it looks first where it really happened. */
const WORLDS_MAX = 10_000;
/** Times are added up in floating point. */
const SLACK_MS = 1e-3;
/** What changed nothing that anybody heard of is looked at last. */
const UNHEARD = Number.MAX_SAFE_INTEGER;

const heldOf = ({ version, state, request, payload, lockUntilMs = -Infinity, expiresAtMs }: DedupeRecord): Held => ({
  version,
  state,
  requestId: request.requestId,
  payload,
  lock: [lockUntilMs, lockUntilMs],
  expires: [expiresAtMs, expiresAtMs],
});

const within = (ms: number, [from, to]: Span): boolean => ms >= from - SLACK_MS && ms <= to + SLACK_MS;
const plus = ([from, to]: Span, ms: number): Span => [from + ms, to + ms];
const mayHavePassed = ([from]: Span, [, to]: Span): boolean => from <= to + SLACK_MS;
const mayBeAhead = ([, to]: Span, [from]: Span): boolean => to > from - SLACK_MS;

/** Whether a record that was read can be what is held, and then all that is known of it. */
const matched = (held: Held, fence: number, record: DedupeRecord): Held | undefined => {
  const versionFits = held.version === undefined ? record.version > fence : held.version === record.version;
  const fits =
    versionFits &&
    held.state === record.state &&
    held.requestId === record.request.requestId &&
    held.payload === record.payload;
  const lockFits = record.lockUntilMs === undefined || within(record.lockUntilMs, held.lock);
  return fits && lockFits && within(record.expiresAtMs, held.expires) ? heldOf(record) : undefined;
};

const mayHaveVersion = ({ version }: Held, { fence }: World, other: number): boolean =>
  version === undefined ? other > fence : version === other;

const isReading = (reply: StoreAnswer): reply is DedupeReading & { readonly created?: boolean } =>
  typeof reply === 'object' && 'record' in reply;

/**
 * When it can have taken place: what it answered says, else between its question and its answer, and after what came
 * before it.
 */
const spanOf = ({ reply, sentMs, heardMs = Infinity }: Asked, { atMs }: World): Span | undefined => {
  const toldMs = isReading(reply) ? reply.atMs : typeof reply === 'object' ? reply.updatedAtMs : undefined;
  if (toldMs !== undefined)
    return toldMs >= atMs - SLACK_MS && within(toldMs, [sentMs, heardMs]) ? [toldMs, toldMs] : undefined;
  const fromMs = Math.max(sentMs, atMs);
  return fromMs <= heardMs + SLACK_MS ? [fromMs, Math.max(fromMs, heardMs)] : undefined;
};

/**
 * What a question can have made of the world, given its answer: nothing when that answer is impossible. One that was
 * lost matters where it changed something.
 */
function worldsAfter(asked: Asked, world: World): World[] {
  const span = spanOf(asked, world);
  if (span === undefined) return [];
  const { question, reply } = asked;
  const { held, fence } = world;
  const lost = asked.heardAt === undefined;
  const atMs = span[0];
  const worlds: World[] = [];
  const same = { held, fence, atMs };
  const becomes = (next: Held | undefined): void =>
    void worlds.push({ held: next, fence: Math.max(fence, next?.version ?? 0), atMs });
  const mayBeGone = held === undefined || mayHavePassed(held.expires, span);
  const there = held !== undefined && mayBeAhead(held.expires, span) ? held : undefined;

  switch (question.ask) {
    case 'restored':
      return [{ held: question.kept.record === undefined ? undefined : heldOf(question.kept.record), fence, atMs }];
    case 'get': {
      if (!isReading(reply)) return mayBeGone ? [same] : [];
      const known = there === undefined ? undefined : matched(there, fence, reply.record);
      if (known !== undefined) becomes(known);
      return worlds;
    }
    case 'claim': {
      const { claim, over } = question;
      const takesOver = there !== undefined && over !== undefined && mayHaveVersion(there, world, over);
      const mayCreate = mayBeGone || (takesOver && mayHavePassed(there.lock, span));
      const mayRefuse =
        there !== undefined && (!takesOver || there.version === undefined || mayBeAhead(there.lock, span));
      if (lost) {
        const lock = plus(span, claim.leaseMs);
        if (mayCreate)
          becomes({
            version: undefined,
            state: 'inflight',
            requestId: claim.request.requestId,
            payload: undefined,
            lock,
            expires: plus(span, Math.max(claim.ttlMs, claim.leaseMs)),
          });
      } else if (isReading(reply) && reply.created === true) {
        if (mayCreate && reply.record.version > fence && reply.record.request.requestId === claim.request.requestId)
          becomes(heldOf(reply.record));
      } else if (isReading(reply) && mayRefuse) {
        const known = matched(there, fence, reply.record);
        if (known !== undefined) becomes(known);
      }
      return worlds;
    }
    case 'end': {
      const fits = there !== undefined && mayHaveVersion(there, world, question.version);
      const { state, payload, ttlMs } = question.outcome;
      if (lost && fits)
        becomes({
          version: undefined,
          state,
          requestId: there.requestId,
          payload,
          lock: [-Infinity, -Infinity],
          expires: plus(span, ttlMs),
        });
      if (
        !lost &&
        typeof reply === 'object' &&
        !isReading(reply) &&
        fits &&
        reply.version > Math.max(fence, question.version)
      )
        becomes(heldOf(reply));
      if (!lost && reply === undefined && (mayBeGone || !fits || there.version === undefined)) worlds.push(same);
      return worlds;
    }
    case 'renew': {
      const fits = there?.state === 'inflight' && mayHaveVersion(there, world, question.version);
      if ((lost || reply === true) && fits) {
        const lock = plus(span, question.leaseMs);
        becomes({
          ...there,
          version: question.version,
          lock,
          expires: [Math.max(there.expires[0], lock[0]), Math.max(there.expires[1], lock[1])],
        });
      }
      if (!lost && reply === false && (mayBeGone || !fits || there.version === undefined)) worlds.push(same);
      return worlds;
    }
    case 'delete': {
      const fits =
        there !== undefined && (question.version === undefined || mayHaveVersion(there, world, question.version));
      if ((lost || reply === true) && fits) worlds.push({ held: undefined, fence, atMs });
      if (!lost && reply === false && (mayBeGone || !fits || there.version === undefined)) worlds.push(same);
      return worlds;
    }
  }
}

const nameOf = ({ held, fence, atMs }: World): string =>
  `${held?.version}/${held?.state}/${held?.requestId}/${held?.payload}/${held?.lock.join('-')}/${held?.expires.join('-')}/${fence}/${atMs}`;

/**
 * Whether the history of one key can have happened one question after the other, each between the asking and its answer
 * (Wing and Gong's search, with the states it has been to remembered). What was never answered took place at any time
 * since, or never.
 *
 * @returns why not, or `undefined` when it can
 */
export function whyNotLinearizable(history: readonly Asked[]): string | undefined {
  const rank = ({ hint, changed, heardAt }: Asked): number =>
    changed === true || heardAt !== undefined ? hint : UNHEARD;
  const all = history
    .filter(({ question, heardAt }) => heardAt !== undefined || question.ask !== 'get')
    .toSorted((a, b) => rank(a) - rank(b) || a.sentAt - b.sentAt);
  const done = all.map(() => false);
  const beenTo = new Set<string>();
  let answered = all.filter(({ heardAt }) => heardAt !== undefined).length;
  let furthest: Asked | undefined;
  let left = Infinity;

  const search = (world: World): boolean => {
    if (answered === 0) return true;
    const name = `${done.map(Number).join('')} ${nameOf(world)}`;
    if (beenTo.has(name) || beenTo.size > WORLDS_MAX) return false;
    beenTo.add(name);
    let firstHeard = Infinity;
    let next: Asked | undefined;
    for (const [index, asked] of all.entries()) {
      if (done[index] !== true && (asked.heardAt ?? Infinity) < firstHeard)
        [firstHeard, next] = [asked.heardAt ?? Infinity, asked];
    }
    if (answered < left) [left, furthest] = [answered, next];
    for (const [index, asked] of all.entries()) {
      if (done[index] === true || asked.sentAt > firstHeard) continue;
      done[index] = true;
      if (asked.heardAt !== undefined) answered--;
      for (const after of worldsAfter(asked, world)) if (search(after)) return true;
      if (asked.heardAt !== undefined) answered++;
      done[index] = false;
    }
    return false;
  };

  if (search({ held: undefined, fence: 0, atMs: -Infinity })) return undefined;
  const told =
    furthest === undefined
      ? 'nothing'
      : `${JSON.stringify(furthest.question)} answered ${JSON.stringify(furthest.reply)}`;
  return beenTo.size > WORLDS_MAX
    ? `no order found in ${WORLDS_MAX} states, up to ${told}`
    : `no order of its ${all.length} questions gives these answers, from ${told} on`;
}
