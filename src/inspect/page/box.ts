/** A value of the page; a new one draws it again. What a signal is, for a page that is drawn whole once a frame. */
export interface Box<T> {
  held: T;
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
  let inside = first;
  return {
    get held() {
      return inside;
    },
    set held(next) {
      if (next === inside) return;
      inside = next;
      redraw();
    },
  };
}

/** A value that is worked out of others: once for each drawing, or anew where what it depends on is another. */
export function derived<T>(work: () => T, basis: () => unknown = () => drawing): { readonly held: T } {
  let of: unknown;
  let worked: T;
  return {
    get held() {
      const now = basis();
      if (of !== now) worked = work();
      of = now;
      return worked;
    },
  };
}
