import * as z from 'zod';
import { count, durationMs, positiveMs } from './policy-entry.ts';

/** How a file spells a verification: another tool that looks whether an uncertain call took effect. */
export interface VerifyEntry {
  tool: string;
  input?: unknown;
  done: { path: string; equals?: unknown };
  output?: string;
  otherwise?: 'not_done' | 'unknown';
  absent_on?: number[];
  timeout_ms?: number;
  max_attempts?: number;
  delay_ms?: number;
  settle_ms?: number;
}

/** How a file spells an undoing: another tool, and what it is given. */
export interface UndoEntry {
  tool: string;
  input?: unknown;
}

/** The same of a tool, with who must act where it fails. */
export interface CompensateEntry extends UndoEntry {
  owner?: string;
}

const ATTEMPTS_MAX = 100;
const TEXT_MAX = 1_024;
const toolName = (): z.ZodString =>
  z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_./:-]+$/, { error: 'must be made of letters, digits and _ - . / : only' });
const path = (): z.ZodString => z.string().min(1).max(TEXT_MAX);

export const verifyEntrySchema: z.ZodType<VerifyEntry> = z
  .strictObject({
    tool: toolName().describe('The tool to look with: it has to be one that only reads.'),
    input: z
      .unknown()
      .exactOptional()
      .describe(
        'Its arguments. ${input.from} is a part of the input of the call in doubt, ${callKey} its key. ' +
          'Default: that input.',
      ),
    done: z
      .strictObject({
        path: path().describe('A place in its answer, such as status or messages[*].id.'),
        equals: z
          .unknown()
          .exactOptional()
          .describe('What stands there when the call took effect. Default: anything but nothing.'),
      })
      .describe('What its answer holds when the call took effect.'),
    output: path().exactOptional().describe('Where in its answer the output of the call is. Default: none.'),
    otherwise: z
      .enum(['not_done', 'unknown'])
      .exactOptional()
      .describe(
        'What an answer without it means. Default not_done, but unknown where the last key is not there at all.',
      ),
    absent_on: z
      .array(count(400, 599))
      .max(16)
      .exactOptional()
      .describe('Statuses by which it says that there is nothing, such as 404. Default: none.'),
    timeout_ms: positiveMs.exactOptional().describe('Limit on one question. Default 5000.'),
    max_attempts: count(1, ATTEMPTS_MAX).exactOptional().describe('Questions while it is not known. Default 3.'),
    delay_ms: durationMs.exactOptional().describe('The wait between two of them. Default 500.'),
    settle_ms: durationMs
      .exactOptional()
      .describe('How long after an attempt has stopped its effect can still come. Default 1000.'),
  })
  .describe('How it is found out whether a call took effect whose end is uncertain, before it is tried again.');

const undo = {
  tool: toolName().describe('The tool that undoes.'),
  input: z
    .unknown()
    .exactOptional()
    .describe(
      'Its arguments. ${output.id} is a part of what the call gave, ${input.from} of what it was given, ' +
        '${callKey} its key. Default: what the call gave.',
    ),
};

export const undoEntrySchema: z.ZodType<UndoEntry | false> = z
  .union([z.strictObject(undo), z.literal(false)], { error: 'must be { tool, input }, or false' })
  .describe('How what this call did is undone, in place of how its tool says. false: there is nothing to undo.');

export const compensateEntrySchema: z.ZodType<CompensateEntry | false> = z
  .union(
    [
      z.strictObject({
        ...undo,
        owner: z.string().min(1).max(256).exactOptional().describe('Who must act when it fails. Default: a person.'),
      }),
      z.literal(false),
    ],
    { error: 'must be { tool, input, owner }, or false' },
  )
  .describe('How what its calls did is undone when a turn with on_failure: compensate fails. false: there is nothing.');
