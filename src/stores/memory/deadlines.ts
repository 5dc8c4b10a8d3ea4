/** Something with a place in one heap, or none. */
export interface Deadline {
  dueMs: number;
  /** Kept by the heap; -1 outside of it. */
  place: number;
}

/**
 * The earliest of many deadlines, which move and go at any time: a binary heap whose members know their place. Adding
 * what is due last costs one comparison, anything else at most the depth of the heap. A heap that only drops its top
 * would pile up what settled long before.
 */
export class Deadlines<T extends Deadline> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The earliest. */
  get first(): T | undefined {
    return this.#heap[0];
  }

  /** Puts it where `dueMs` belongs, whether it is new here or has moved. */
  put(member: T, dueMs: number): void {
    const later = dueMs >= member.dueMs;
    member.dueMs = dueMs;
    if (member.place < 0) {
      this.#heap.push(member);
      this.#rise(member, this.#heap.length - 1);
    } else if (later) this.#sink(member, member.place);
    else this.#rise(member, member.place);
  }

  /** Takes it out, if it is here. */
  drop(member: T): void {
    const { place } = member;
    if (place < 0) return;
    member.place = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === member) return;
    const parent = this.#heap[(place - 1) >> 1];
    if (place > 0 && parent !== undefined && parent.dueMs > last.dueMs) this.#rise(last, place);
    else this.#sink(last, place);
  }

  #rise(member: T, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.dueMs <= member.dueMs) break;
      this.#set(parent, place);
      place = above;
    }
    this.#set(member, place);
  }

  #sink(member: T, from: number): void {
    let place = from;
    for (;;) {
      const left = 2 * place + 1;
      const one = this.#heap[left];
      const two = this.#heap[left + 1];
      const least = two !== undefined && one !== undefined && two.dueMs < one.dueMs ? two : one;
      if (least === undefined || least.dueMs >= member.dueMs) break;
      const below = least.place;
      this.#set(least, place);
      place = below;
    }
    this.#set(member, place);
  }

  #set(member: T, place: number): void {
    this.#heap[place] = member;
    member.place = place;
  }
}
