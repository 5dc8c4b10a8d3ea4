import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import { areBlocks } from '../guarded/blocks.ts';

/** A result of MCP's, made of what a tool of MCP's did not give itself: an alternative did. */
export const asResult = (value: unknown): unknown =>
  areBlocks(read(value, 'content')) ? value : { content: [{ type: 'text', text: outputText(value) }] };
