import type { ToolPolicy } from '../contract/policy.ts';
import type { AnyTool } from '../contract/tool.ts';

/** A registered symbol, since an adapter and the layer that it is given can come from two copies of the package. */
const FOREIGN: unique symbol = Symbol.for('spillway.foreign_tool') as never;

/** Of what a framework's tool paused with, which is no output: the tool is called again. */
export const PAUSED: unique symbol = Symbol.for('spillway.paused') as never;

/** Marks a tool that was made for a framework, of which nothing is known but its name. */
export function foreign<T extends AnyTool>(tool: T): T {
  return Object.assign(tool, { [FOREIGN]: true });
}

/** What holds of a tool where neither its policy nor its layer says: a foreign one may write. */
export const presumedOf = (tool: AnyTool): ToolPolicy => (Object.hasOwn(tool, FOREIGN) ? { effects: 'mutating' } : {});

/** Marks what a framework's tool paused with, such as an interrupt. */
export const pausing = <T extends object>(content: T): T => Object.defineProperty(content, PAUSED, { value: true });
