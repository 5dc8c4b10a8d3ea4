// Was: the gateway kept the events of a long streamed answer as they came, though nobody read them again. Now: it reads
// them as they come and keeps under 60 bytes of each.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { BlockAssembler } from '../../src/gateway/anthropic/blocks.ts';
import { SseSplitter } from '../../src/gateway/wire/sse.ts';

const DELTAS = 20_000;
const utf8 = new TextEncoder();
const delta = (n: number): Uint8Array =>
  utf8.encode(
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"w${n} "}}\n\n`,
  );

/** An answer of many deltas, as the gateway follows it. */
const followed = (): BlockAssembler => {
  const splitter = new SseSplitter();
  const blocks = new BlockAssembler();
  blocks.start(0, { type: 'text', text: '' });
  for (let n = 0; n < DELTAS; n++) for (const event of splitter.push(delta(n))) blocks.grow(0, event);
  return blocks;
};

it('R-13.1 a long answer is read as it comes, and not kept as it came', () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const used = (): number => {
    gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  followed();
  const before = used();
  const answers = Array.from({ length: 10 }, followed);
  // About 150 bytes as they come, and 8 of text.
  expect((used() - before) / (10 * DELTAS)).toBeLessThan(60);
  for (const answer of answers)
    expect(answer.blocks[0]?.value['text']).toBe(Array.from({ length: DELTAS }, (_, n) => `w${n} `).join(''));
});
