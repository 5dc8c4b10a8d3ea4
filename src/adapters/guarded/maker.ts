import type { ToolPolicy } from '../../contract/policy.ts';
import { read } from '../../errors/structure.ts';
import { guardedCalls, type GuardLayerOptions } from './calls.ts';
import { checkGuardable, guardedFunction, type ForeignFunction } from './function.ts';
import { overridden } from './overridden.ts';

/** How the tools of one `guardTool` are guarded: all have one policy. */
export interface GuardToolOptions extends Omit<GuardLayerOptions, 'policies'> {
  /** What it leaves out comes from the layer's defaults. */
  readonly policy?: ToolPolicy;
}

type Fn = (...args: never[]) => unknown;

/** The function of a tool among what its framework's maker is given. */
interface Found {
  readonly name: string;
  readonly fn: Fn;
  /** The same arguments with another function in its place. */
  readonly put: (guarded: unknown) => readonly unknown[];
}

/** How a framework's maker of tools is guarded: the shape of the calls, and where the function stands. */
export interface MakerShape<Context extends readonly unknown[]> extends Omit<
  ForeignFunction<Context>,
  'toolName' | 'fn' | 'self' | 'effects'
> {
  /** `undefined` for a tool without a function, which its framework leaves to others: it is made as it is. */
  readonly find: (args: readonly unknown[]) => Found | undefined;
}

/** The first that is a name. */
export const nameOf = (candidates: readonly unknown[]): string => {
  const name = candidates.find((candidate) => typeof candidate === 'string' && candidate !== '');
  if (typeof name === 'string') return name;
  throw new RangeError('guardTool: a tool needs a name, by which policies, breakers and the trace know it');
};

/** The function is a member of the definition, which the maker is given first. */
export const memberOf =
  (member: string) =>
  ([definition, ...rest]: readonly unknown[]): Found | undefined => {
    const fn = read(definition, member);
    if (typeof fn !== 'function') return undefined;
    return {
      name: nameOf([read(definition, 'name'), read(definition, 'id'), fn.name]),
      fn: fn as Fn,
      put: (guarded) => [overridden(definition as object, { [member]: guarded }), ...rest],
    };
  };

/**
 * A maker like the framework's, function or class, whose tools run under one layer. Everything but the tool's function
 * is the framework's own: it reads the input, asks for approval and knows its tools as it does alone.
 */
export function guardedMaker<Make extends object, Context extends readonly unknown[]>(
  make: Make,
  { policy, ...options }: GuardToolOptions,
  { find, ...shape }: MakerShape<Context>,
): Make {
  if (typeof make !== 'function')
    throw new RangeError(`guardTool takes what makes the framework’s tools, not ${typeof make}`);
  if ('policies' in options) throw new RangeError('guardTool has no option "policies"; its tools have one policy');
  const calls = guardedCalls('guardTool', options, { policy });
  const guarded = (args: readonly unknown[]): readonly unknown[] => {
    const found = find(args);
    if (found === undefined) return args;
    checkGuardable('guardTool', found.name, found.fn, shape.streams !== undefined);
    return found.put(guardedFunction<Context>(calls, { ...shape, toolName: found.name, fn: found.fn }));
  };
  return new Proxy(make, {
    apply: (target, self, args: readonly unknown[]): unknown => Reflect.apply(target, self, guarded(args)),
    construct: (target, args: readonly unknown[], newTarget) =>
      Reflect.construct(target, guarded(args) as unknown[], newTarget) as object,
  });
}
