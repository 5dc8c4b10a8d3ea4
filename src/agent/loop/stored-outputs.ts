import * as z from 'zod';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { AnyTool } from '../../contract/tool.ts';
import { tool } from '../../layer/tool.ts';

/** The tool by which a model reads what was cut from an output. */
export const TOOL_OUTPUT = 'tool_output';

/** Texts too long to be shown whole, by handle: bounded, the one used longest ago makes room. */
export interface StoredOutputs {
  /** Keeps a text and gives its handle; `undefined` for a text that is longer than all the room there is. */
  keep(text: string): string | undefined;
  /**
   * The text of a handle, which then counts as the one used last; `undefined` for a handle that is not known, or made
   * room.
   */
  read(handle: string): string | undefined;
}

/**
 * Makes a bounded store for what is cut from outputs. A run makes its own; one that is given to several runs keeps the
 * handles of stored transcripts alive.
 *
 * @param maxChars characters kept in all
 * @param id gives a new handle each time
 *
 * @example
 * const outputs = storedOutputs(1_000_000, () => runtime.id());
 * const handle = outputs.keep('a long text');
 */
export function storedOutputs(maxChars: number, id: () => string): StoredOutputs {
  const texts = new Map<string, string>();
  let chars = 0;
  const drop = (handle: string, text: string): void => {
    texts.delete(handle);
    chars -= text.length;
  };
  return {
    keep: (text) => {
      if (text.length > maxChars) return undefined;
      const handle = id();
      texts.set(handle, text);
      chars += text.length;
      for (const [oldest, old] of texts) {
        if (chars <= maxChars) break;
        drop(oldest, old);
      }
      return handle;
    },
    read: (handle) => {
      const text = texts.get(handle);
      if (text === undefined) return undefined;
      // A Map holds its keys in the order in which they came: this one is the youngest now.
      texts.delete(handle);
      texts.set(handle, text);
      return text;
    },
  };
}

const isInsidePair = (text: string, at: number): boolean =>
  at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1] ?? '') && /[\udc00-\udfff]/.test(text[at] ?? '');

/**
 * A piece of a text that splits no pair of surrogates: it may be a character longer at its start, and one shorter or,
 * if it were empty, longer at its end.
 */
const piece = (text: string, offset: number, length: number): { readonly from: number; readonly to: number } => {
  const from = isInsidePair(text, offset) ? offset - 1 : Math.min(offset, text.length);
  const end = Math.min(text.length, offset + length);
  const to = isInsidePair(text, end) ? (end - 1 > from ? end - 1 : end + 1) : end;
  return { from, to: Math.max(from, to) };
};

/** An output as the model is shown it: whole, or its beginning and how to read the rest. */
export function shown(text: string, maxChars: number, outputs: StoredOutputs): string {
  if (text.length <= maxChars) return text;
  const { to } = piece(text, 0, maxChars);
  const handle = outputs.keep(text);
  const rest =
    handle === undefined
      ? 'The rest was too long to be kept.'
      : `Read on with ${TOOL_OUTPUT}: ${JSON.stringify({ handle, offset: to })}`;
  return `${text.slice(0, to)}\n\n[Cut: the first ${to} of ${text.length} characters. ${rest}]`;
}

interface ToolOutputInput {
  readonly handle: string;
  readonly offset: number;
  readonly length: number;
}

/** The tool itself. It reads at most as much at once as any result shows. */
export function toolOutputTool(outputs: StoredOutputs, maxChars: number): AnyTool {
  return tool({
    name: TOOL_OUTPUT,
    description:
      'Reads on in a tool result that was cut. The cut result names the handle and the offset to go on from.',
    input: z.strictObject({
      handle: z.string(),
      offset: z.number().int().min(0).default(0),
      length: z.number().int().min(1).max(maxChars).default(maxChars),
    }),
    policy: { breaker: false, retry: { maxAttempts: 1 }, effects: 'read' },
    execute: ({ handle, offset, length }: ToolOutputInput): string => {
      const text = outputs.read(handle);
      if (text === undefined) {
        const safeMessage =
          'No output is kept under this handle; it may have made room for later ones. Do not try again with ' +
          'the same input: call the tool itself if you need its output.';
        throw new ToolExecutionError('invalid_parameters', 'the handle is unknown', { safeMessage });
      }
      const { from, to } = piece(text, offset, length);
      return `${text.slice(from, to)}\n\n[Characters ${from} to ${to} of ${text.length}.]`;
    },
  });
}
