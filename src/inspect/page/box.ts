/** A value of the page; a new one draws it again. What a signal is, for a page that is drawn whole once a frame. */
export interface Box<T> {
  held: T;
}

let asked = false;
/** Which drawing this is: what was worked out for one holds for all of it. */
let drawing = 0;

/** The next frame draws again what this one has drawn: it shows something that moves. */
export function again(): void {
  asked = true;
}

/** Draws the page with the next frame. */
export function redraw(): void {
  drawing++;
  again();
}

/** Says how the page is drawn. */
export function drawWith(draw: () => void): void {
  const frame = (): void => {
    requestAnimationFrame(frame);
    if (!asked) return;
    asked = false;
    drawing++;
    draw();
  };
  redraw();
  frame();
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
