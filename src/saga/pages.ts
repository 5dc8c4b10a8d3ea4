import { catchError, concatMap, defer, from, map, mergeMap, of, switchMap, toArray, type Observable } from 'rxjs';
import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import type { DedupeRecord } from '../contract/store.ts';
import { JournalText, PAGE_ENTRIES, claimOf, journalIn, pageClaim, pageIn } from './journal-text.ts';
import { JOURNAL_TOOL } from './own-records.ts';
import { KeptPage, type PageOwner } from './kept-page.ts';

/** What is found of a journal that another process has left. */
export type Adopted = 'there' | 'gone' | 'damaged';

/** Whose journal it is. */
export interface JournalOwner extends PageOwner {
  readonly leaseMs: number;
  journal: Journal;
  /** Whether what stands in the place of its first page is to be gone on with. @throws where that must stay */
  takes(found: Journal | undefined): asserts found is Journal;
}

/**
 * A journal in the store. What one call costs does not grow with the turn: its entries are in pages, of which those are
 * written that have changed. The first has what the turn is, too, and how many others there are.
 */
export class JournalPages {
  readonly #owner: JournalOwner;
  readonly #text = new JournalText();
  readonly #pages: KeptPage[];
  readonly #places = new Map<JournalEntry, number>();
  /** Pages that are not in the store as they stand. */
  readonly #changed = new Set<number>();

  constructor(owner: JournalOwner) {
    this.#owner = owner;
    const claim = (): ReturnType<typeof claimOf> => claimOf(JOURNAL_TOOL, owner.journal, owner.writer, owner.leaseMs);
    this.#pages = [new KeptPage(owner, claim, (record) => this.#found(record))];
  }

  /** What the turn is has changed, and is to be written with the next one. */
  touchHead(): void {
    this.#changed.add(0);
  }

  /** An entry has changed, and is to be written with the next one. */
  touch(entry: JournalEntry): void {
    const { entries } = this.#owner.journal;
    for (let place = this.#places.size; place < entries.length; place++)
      this.#places.set(entries[place] as JournalEntry, place);
    this.#changed.add(Math.floor((this.#places.get(entry) ?? 0) / PAGE_ENTRIES));
  }

  /** Reads what another process has left, and goes on with it. */
  adopted(): Observable<Adopted> {
    const first = this.#page(0);
    return first.read().pipe(
      switchMap((reading): Observable<Adopted> => {
        const journal = reading === undefined ? undefined : journalIn(reading.record);
        if (reading === undefined || journal === undefined) return of('gone');
        first.version = reading.record.version;
        return this.#read(journal).pipe(
          map((entries): Adopted => {
            if (entries === undefined) return 'damaged';
            this.#owner.journal = { ...journal, entries: [] };
            this.#goOn(entries);
            return 'there';
          }),
        );
      }),
    );
  }

  /** The store forgets it: the first page, by which it is found, before the others. */
  forgotten(): Observable<unknown> {
    const [first, ...others] = this.#pages;
    return (first as KeptPage)
      .forgotten()
      .pipe(
        mergeMap((isForgotten) => (isForgotten ? from(others).pipe(mergeMap((page) => page.forgotten())) : of(false))),
      );
  }

  /** The pages that have changed; the first one last, which says how many there are, but for its first time. */
  write(): Observable<void> {
    const { journal } = this.#owner;
    const first$ = this.#page(0).version === undefined ? this.#put(0) : of(undefined);
    return first$.pipe(
      switchMap(() =>
        from([...this.#changed].filter((place) => place > 0).toSorted((one, other) => one - other)).pipe(
          concatMap((place) => this.#put(place)),
          toArray(),
        ),
      ),
      switchMap(() => {
        const pages = this.#pages.length - 1;
        if (pages === journal.pages && !this.#changed.has(0)) return of(undefined);
        journal.pages = pages;
        return this.#put(0);
      }),
    );
  }

  #page(place: number): KeptPage {
    for (let next = this.#pages.length; next <= place; next++)
      this.#pages.push(
        new KeptPage(this.#owner, () => pageClaim(this.#owner.journal, next, this.#owner.writer, this.#owner.leaseMs)),
      );
    return this.#pages[place] as KeptPage;
  }

  #put(place: number): Observable<void> {
    return defer(() => {
      this.#changed.delete(place);
      return this.#page(place).put(() => this.#textOf(place));
    }).pipe(
      catchError((error: unknown) => {
        this.#changed.add(place);
        throw error;
      }),
    );
  }

  #textOf(place: number): string {
    const { journal, writer } = this.#owner;
    const { entries, ...head } = journal;
    const start = place * PAGE_ENTRIES;
    return this.#text.of(place === 0 ? { ...head, writer } : { writer }, entries.slice(start, start + PAGE_ENTRIES));
  }

  /** All entries of a journal whose first page was read; `undefined` where one of the others cannot be. */
  #read({ pages, entries }: Journal): Observable<JournalEntry[] | undefined> {
    return from(Array.from({ length: pages }, (_, index) => index + 1)).pipe(
      concatMap((place) => {
        const page = this.#page(place);
        return page.read().pipe(
          map((reading) => {
            page.version = reading?.record.version;
            return pageIn(reading?.record);
          }),
        );
      }),
      toArray(),
      map((others) => (others.includes(undefined) ? undefined : [entries, ...others].flatMap((some) => some ?? []))),
    );
  }

  /** What stands where the first page is to be. */
  #found(record: DedupeRecord): Observable<unknown> {
    const { journal } = this.#owner;
    const found = journalIn(record);
    return defer(() => {
      this.#owner.takes(found);
      return this.#read(found);
    }).pipe(
      map((entries) => {
        this.#owner.takes(entries === undefined ? undefined : found);
        if (found !== undefined) {
          const { owner, pages, state, reason } = found;
          Object.assign(journal, { owner, pages, state }, reason === undefined ? {} : { reason });
        }
        this.#goOn(entries ?? []);
      }),
    );
  }

  /** Goes on with what another process has begun. All of it is written anew, so that nothing more comes from there. */
  #goOn(before: readonly JournalEntry[]): void {
    const { journal } = this.#owner;
    journal.entries.unshift(...before);
    this.#places.clear();
    for (const place of this.#pages.keys()) this.#changed.add(place);
    for (const entry of journal.entries) this.touch(entry);
  }
}
