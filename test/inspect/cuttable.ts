import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** A way to a server that can be cut. */
export interface Cuttable {
  readonly port: number;
  /** Cuts what is open, and lets nothing through until it is mended. */
  readonly cut: () => void;
  readonly mend: () => void;
  /** Cuts what is open once so many bytes more have come from the server: in the midst of a message. */
  readonly cutAfter: (bytes: number) => Promise<void>;
  readonly close: () => void;
}

export async function cuttable(port: () => number): Promise<Cuttable> {
  const open = new Set<Socket>();
  let isCut = false;
  let left = Infinity;
  let over: () => void = () => undefined;
  const cutAll = (): void => {
    for (const socket of open) socket.destroy();
    open.clear();
  };
  const counted = (): Transform =>
    new Transform({
      transform(chunk: Buffer, _, done) {
        const passed = chunk.subarray(0, left);
        left -= chunk.length;
        if (left > 0) return done(null, passed);
        left = Infinity;
        this.push(passed);
        // What was let through arrives before the end does.
        setImmediate(() => {
          cutAll();
          over();
        });
      },
    });
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const out = connect(port(), '127.0.0.1');
    for (const [a, b] of [
      [socket, out],
      [out, socket],
    ] as const) {
      open.add(a);
      a.on('error', () => b.destroy()).on('close', () => b.destroy());
    }
    socket.pipe(out);
    out.pipe(counted()).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      cutAll();
    },
    mend: () => {
      isCut = false;
    },
    cutAfter: (bytes) =>
      new Promise((resolve) => {
        over = resolve;
        left = bytes;
      }),
    close: () => {
      cutAll();
      server.close();
    },
  };
}
