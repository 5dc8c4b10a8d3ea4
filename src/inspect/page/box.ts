/** A value of the page; a new one draws it again. What a signal is, for a page that is drawn whole once a frame. */
export interface Box<T> {
  value: T;
}

let draw: () => void = () => undefined;
let asked = false;
/** Which drawing this is: what was worked out for one holds for all of it. */
let drawing = 0;

const drawNow = (): void => {
  asked = false;
  drawing++;
  draw();
};

/** Draws the page with the next frame. */
export function redraw(): void {
  drawing++;
  if (asked) return;
  asked = true;
  requestAnimationFrame(drawNow);
}

/** Says how the page is drawn. */
export function drawWith(work: () => void): void {
  draw = work;
  redraw();
}

export function box<T>(first: T): Box<T> {
  let held = first;
  return {
    get value() {
      return held;
    },
    set value(next) {
      if (next === held) return;
      held = next;
      redraw();
    },
  };
}

/** A value that is worked out of others, once for each drawing. */
export function derived<T>(work: () => T): { readonly value: T } {
  let of = -1;
  let held: T;
  return {
    get value() {
      if (of !== drawing) held = work();
      of = drawing;
      return held;
    },
  };
}
