import { linearPattern } from './linear-pattern.ts';

/** Keywords whose value is data, in which a `pattern` means nothing. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Deeper than a schema is that compiles. */
const DEPTH_MAX = 512;

const refusalOf = (pattern: string): string | undefined => {
  try {
    linearPattern(pattern);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

/**
 * Why a pattern of a JSON Schema, or of one inside it, cannot be used, without compiling the schema; `undefined` where
 * all of them can. It names the first that cannot.
 */
export function refusedPattern(schema: unknown, depth = 0): string | undefined {
  if (typeof schema !== 'object' || schema === null || depth > DEPTH_MAX) return undefined;
  for (const [key, value] of Object.entries(schema as Readonly<Record<string, unknown>>)) {
    if (DATA.has(key)) continue;
    if (key === 'pattern' && typeof value === 'string') {
      const refusal = refusalOf(value);
      if (refusal !== undefined) return refusal;
    }
    const keys = key === 'patternProperties' && typeof value === 'object' && value !== null ? Object.keys(value) : [];
    const refusal = keys.map(refusalOf).find((each) => each !== undefined) ?? refusedPattern(value, depth + 1);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
