import type { ToolCallPart } from '../message.ts';

/**
 * A call's input as every provider takes it: an object. What the model wrote instead stays visible to it, as
 * `$unparsed`.
 */
export const wireInput = ({ input, unparsed }: ToolCallPart): Readonly<Record<string, unknown>> => {
  if (unparsed !== undefined) return { $unparsed: unparsed };
  if (typeof input === 'object' && input !== null && !Array.isArray(input))
    return input as Readonly<Record<string, unknown>>;
  return input === undefined ? {} : { $unparsed: JSON.stringify(input) };
};

/** A text as every provider takes it: with something in it. */
export const wireText = (text: string): readonly string[] => (/\S/.test(text) ? [text.toWellFormed()] : []);

/** What is nested deeper than this cannot be written again by everyone. */
const DEPTH_MAX = 512;

/** Level by level, since what is too deep is too deep for a walk as well. */
const isDeep = (value: unknown): boolean => {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= DEPTH_MAX; depth++) {
    level = level.flatMap((inner) =>
      typeof inner === 'object' && inner !== null ? (Object.values(inner) as unknown[]) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
};

/** An escaped surrogate: it may be a lone one, which no provider takes back. */
const SURROGATE = /\\u[dD][89a-fA-F]/;
const wellFormed = (_key: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value;

/** What a model wrote as the input of a call. */
export const readWireInput = (json: string): { readonly input?: unknown; readonly unparsed?: string } => {
  try {
    const input: unknown = SURROGATE.test(json) ? JSON.parse(json, wellFormed) : JSON.parse(json);
    return isDeep(input) ? { unparsed: json } : { input };
  } catch {
    return { unparsed: json };
  }
};
