import { z } from 'zod';
import type { AnyTool } from '../../src/contract/tool.ts';
import { Dice } from './dice.ts';
import type { Extras } from './extras.ts';
import { fires } from './faults.ts';

/** What a tool gets: as its schema gives it, which tells that it was asked. */
export interface Input extends Record<string, unknown> {
  readonly n: number;
  /** By no schema. */
  readonly misfit?: true;
  readonly checked?: true;
  /** Given by the hook that changed it. */
  readonly stamp?: number;
}

const fitting = z.looseObject({ n: z.number(), misfit: z.undefined().optional() });
const INPUT = fitting.transform((input) => ({ ...input, checked: true }));
const OUTPUT = z.looseObject({
  n: z.number(),
  tool: z.string(),
  attempt: z.number(),
  misfit: z.undefined().optional(),
});

export const withSchemas = (tool: AnyTool, { schemas }: Extras): AnyTool =>
  schemas === undefined ? tool : { ...tool, input: INPUT, output: OUTPUT };

/** The input of call `n`: a function of the run and the call. */
export function inputOf(seed: number, { schemas }: Extras, n: number): Input {
  return schemas !== undefined && fires(schemas, 'input', new Dice(seed, 32, n)) ? { n, misfit: true } : { n };
}

/** Whether this attempt's answer does not fit. */
export const spoils = (seed: number, { schemas }: Extras, n: number, tool: number, attempt: number): boolean =>
  schemas !== undefined && fires(schemas, 'output', new Dice(seed, 33, n, tool, attempt));
