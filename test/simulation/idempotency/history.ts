import type { Kept, StoreAnswer, StoreQuestion } from './store-model.ts';

/** A question to the store as its client saw it. */
export interface Asked {
  readonly key: string;
  /** `restored`: a replica has taken over with this, or someone has cleared the key. */
  readonly question: StoreQuestion | { readonly ask: 'restored'; readonly kept: Kept };
  /** Places in the order of everything, and times of the store's clock. */
  readonly sentAt: number;
  readonly sentMs: number;
  /** Absent when no answer ever came: it may have taken place at any time since, or not at all. */
  heardAt?: number;
  heardMs?: number;
  reply?: StoreAnswer;
  /** When it took place, if it did, and whether it changed anything. The judge only looks there first. */
  hint: number;
  changed?: boolean;
}

/** Everything that was asked of a store, key by key. */
export class StoreHistory {
  readonly byKey: Map<string, Asked[]> = new Map();
  #place = 0;

  next(): number {
    return ++this.#place;
  }

  sent(key: string, question: StoreQuestion, nowMs: number): Asked {
    const asked: Asked = { key, question, sentAt: this.next(), sentMs: nowMs, hint: Infinity };
    this.#add(asked);
    return asked;
  }

  /** It takes place now, whether or not anybody will hear of it. */
  happens(asked: Asked, ask: () => StoreAnswer): StoreAnswer {
    asked.hint = this.next();
    const reply = ask();
    asked.changed =
      reply !== undefined &&
      reply !== false &&
      !(typeof reply === 'object' && 'atMs' in reply && reply.created !== true);
    return reply;
  }

  heard(asked: Asked, reply: StoreAnswer, nowMs: number): void {
    asked.heardAt = this.next();
    asked.heardMs = nowMs;
    asked.reply = reply;
  }

  restored(key: string, kept: Kept, nowMs: number): void {
    const asked: Asked = {
      key,
      question: { ask: 'restored', kept },
      sentAt: this.next(),
      sentMs: nowMs,
      hint: this.next(),
      changed: true,
    };
    this.heard(asked, undefined, nowMs);
    this.#add(asked);
  }

  #add(asked: Asked): void {
    const list = this.byKey.get(asked.key);
    if (list === undefined) this.byKey.set(asked.key, [asked]);
    else list.push(asked);
  }
}
