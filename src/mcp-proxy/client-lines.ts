import { Transform } from 'node:stream';
import type { JSONRPCErrorResponse } from '@modelcontextprotocol/sdk/types.js';
import { LineReader, MESSAGE_BYTES } from '../providers/mcp/stdio/line-reader.ts';
import { refusalOfLong } from '../providers/mcp/stdio/long-message.ts';

const NEWLINE = Buffer.from('\n');
/** What the SDK's transport takes in one chunk, its newline included. */
const LINE_BYTES = MESSAGE_BYTES - 1;

/**
 * A client's input in chunks of one line each. The SDK's transport joins all that it has whenever more comes, which for
 * a message of many chunks is quadratic: 9 MB, a file to be written, took seconds of the loop that all calls share.
 *
 * @param refuse told the answer to a request that is too long to be read, which is passed over; errors with anything
 * else that is
 */
export const clientLines = (refuse: (answer: JSONRPCErrorResponse) => void): Transform => {
  const lines = new LineReader(LINE_BYTES);
  return new Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding, done) {
      for (const line of lines.read(chunk)) {
        const refusal = Buffer.isBuffer(line) ? undefined : refusalOfLong(line, LINE_BYTES);
        if (Buffer.isBuffer(line)) this.push(Buffer.concat([line, NEWLINE]));
        else if (refusal === undefined) return done(new Error(`The client sent a message of ${line.bytes} bytes`));
        else refuse(refusal);
      }
      done();
    },
  });
};
