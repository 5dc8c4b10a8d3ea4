import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the ports that a kernel gives to outgoing connections, of which one can be taken before it is listened at. */
const FROM = 15_000;
const TO = 32_000;
const given = new Set<number>();

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A port for a server that takes one by number only: nothing listens at it, and this process is given it once. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, TO);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}
