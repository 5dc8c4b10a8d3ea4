import { read } from '../../errors/structure.ts';

/** Whether a value is a list of content blocks, as models' APIs and MCP take them beside texts. */
export const areBlocks = (value: unknown): value is readonly object[] =>
  Array.isArray(value) && value.every((block: unknown) => typeof read(block, 'type') === 'string');
