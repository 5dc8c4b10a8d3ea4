/**
 * A trace as one has it who has nothing but the file: lines of JSON, of which nothing is known but what the page of the
 * sinks says. No type and no code of the package is used here, nor by who asks.
 */
export interface Line {
  readonly type: string;
  readonly seq: number;
  readonly atMs: number;
  readonly [field: string]: unknown;
}

export interface File {
  readonly header: Line;
  readonly events: readonly Line[];
  /** What the sink itself says, such as how the file ended. */
  readonly notes: readonly Line[];
}

export const fileOf = (text: string): File => {
  const lines = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
  const events = lines.filter(({ source }) => source !== 'sink');
  const notes = lines.filter(({ source }) => source === 'sink');
  const [header] = notes;
  if (header === undefined) throw new Error('it has no header');
  return { header, events, notes };
};

/** A field, and a field of that, if it is there. */
export const at = (line: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, name) => (typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined),
    line,
  );
export const text = (line: unknown, ...path: readonly string[]): string => {
  const value = at(line, ...path);
  return typeof value === 'string' ? value : '';
};
export const number = (line: unknown, ...path: readonly string[]): number => {
  const value = at(line, ...path);
  return typeof value === 'number' ? value : NaN;
};
export const list = (line: unknown, ...path: readonly string[]): readonly unknown[] => {
  const value = at(line, ...path);
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
};

const types = new WeakMap<File, Partial<Record<string, readonly Line[]>>>();
export const of = (file: File, type: string): readonly Line[] => {
  let known = types.get(file);
  if (known === undefined) {
    known = Object.groupBy(file.events, (line) => line.type);
    types.set(file, known);
  }
  return known[type] ?? [];
};

const calls = new WeakMap<File, ReadonlyMap<unknown, readonly Line[]>>();
/** What happened in one call. */
export const ofCall = (file: File, callId: string): readonly Line[] => {
  let known = calls.get(file);
  if (known === undefined) {
    known = Map.groupBy(file.events, ({ callId: id }) => id);
    calls.set(file, known);
  }
  return known.get(callId)?.filter(({ source }) => source === 'call') ?? [];
};
export const inCall = (file: File, callId: string, type: string): readonly Line[] =>
  ofCall(file, callId).filter((line) => line.type === type);

const tools = new WeakMap<File, ReadonlyMap<string, unknown>>();
/** A tool as it was in force: as it was listed, or as its first call brought it along. */
export const toolOf = (file: File, name: string): unknown => {
  let known = tools.get(file);
  if (known === undefined) {
    const listed = of(file, 'layer_started').flatMap((line) => list(line, 'tools'));
    const brought = of(file, 'call_started').flatMap((line) => ('tool' in line ? [line['tool']] : []));
    known = new Map([...brought, ...listed].map((tool) => [text(tool, 'name'), tool]));
    tools.set(file, known);
  }
  return known.get(name);
};
