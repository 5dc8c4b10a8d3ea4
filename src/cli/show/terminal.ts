import { styleText } from 'node:util';
import type { NodeState, TurnStatus } from '../../contract/turn.ts';
import { ASCII, UNICODE, type Glyphs, type MarkKind } from '../../inspect/share/glyphs.ts';

/** Where text goes: what is used of `process.stdout` and `process.stderr`. */
export interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

type Format = Parameters<typeof styleText>[0];
/** What has a colour of its own. */
export type Part = MarkKind | NodeState | TurnStatus | 'quiet' | 'strong';

const FORMATS: Readonly<Record<Part, Format | undefined>> = {
  start: undefined,
  alternative: 'cyan',
  default: 'cyan',
  value: 'green',
  error: 'red',
  timeout: 'yellow',
  rejected: 'red',
  cut: 'yellow',
  skip: 'gray',
  verified: 'cyan',
  undo: 'cyan',
  undone: 'cyan',
  left: 'red',
  succeeded: 'green',
  defaulted: 'cyan',
  failed: 'red',
  skipped: 'gray',
  timed_out: 'yellow',
  compensated: 'cyan',
  compensation_failed: 'red',
  canceled: 'yellow',
  completed: 'green',
  partial: 'yellow',
  escalated: 'red',
  quiet: 'gray',
  strong: 'bold',
};

/** Columns where there is no terminal to ask. */
const COLUMNS = 100;
/** Less than this cannot hold a diagram; a terminal that says 0 does not know. */
const COLUMNS_MIN = 20;

/** Whether there is colour depends on the environment, too; where that may not be read there is none. */
const painted = (format: Format, text: string, stream: Output): string => {
  try {
    return styleText(format, text, { stream });
  } catch {
    return text;
  }
};

/** How to draw on an output. */
export interface Style {
  readonly columns: number;
  readonly glyphs: Glyphs;
  readonly paint: (part: Part, text: string) => string;
}

/** Colours follow `--no-color`, then Node's own order: FORCE_COLOR, NO_COLOR, whether it is a terminal. */
export function styleOf(output: Output, { color, ascii }: { readonly color: boolean; readonly ascii: boolean }): Style {
  const { columns = 0 } = output;
  return {
    columns: columns === 0 ? COLUMNS : Math.max(COLUMNS_MIN, columns),
    glyphs: ascii ? ASCII : UNICODE,
    paint: (part, text) => {
      const format = FORMATS[part];
      return !color || format === undefined || text === '' ? text : painted(format, text, output);
    },
  };
}
