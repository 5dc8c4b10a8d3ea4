import type { JSX } from 'preact';
import { redraw } from './box.ts';

interface VirtualProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  /** Of one row, in pixels. */
  readonly height: number;
  readonly keyOf: (item: T) => string;
  readonly row: (item: T) => JSX.Element;
}

/** Rows drawn beyond those that are seen. */
const BEYOND = 4;
const ROWS_MAX = 80;

/** Where each list stands, by its label. */
const places = new Map<string, { top: number; room: number }>();

/** A list of which only the rows in sight are in the page, however long it is. */
export const Virtual = <T,>({ label, items, height, keyOf, row }: VirtualProps<T>): JSX.Element => {
  const place = places.get(label) ?? { top: 0, room: 0 };
  places.set(label, place);
  const first = Math.max(0, Math.min(items.length - 1, Math.floor(place.top / height) - BEYOND));
  const count = Math.min(ROWS_MAX, Math.ceil((place.room || 900) / height) + 2 * BEYOND);
  const shown = items.slice(first, first + count);
  return (
    <div
      class="virtual"
      ref={(element: HTMLElement | null) => {
        if (element === null || element.clientHeight === place.room) return;
        place.room = element.clientHeight;
        redraw();
      }}
      role="group"
      aria-label={label}
      tabIndex={0}
      onScroll={({ currentTarget }) => {
        place.top = currentTarget.scrollTop;
        redraw();
      }}
    >
      <div style={{ height: `${items.length * height}px` }}>
        <div style={{ transform: `translateY(${first * height}px)` }}>
          {shown.map((item) => (
            <div key={keyOf(item)} style={{ height: `${height}px` }}>
              {row(item)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
};
