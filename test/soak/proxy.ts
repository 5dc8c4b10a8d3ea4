import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Dice } from '../simulation/dice.ts';

/** What the network does to what is sent through it. */
export type Weather = 'calm' | 'slow' | 'sliced' | 'black_hole' | 'cut';

export interface Proxy {
  readonly port: number;
  /** How often each weather began. */
  readonly seen: Readonly<Record<Weather, number>>;
  /** From now on, for all connections. */
  become(weather: Weather): void;
  close(): Promise<void>;
}

const SLOW_MAX_MS = 120;
const SLICE_MAX_BYTES = 40;

/** One direction of a connection: bytes keep their order whatever happens to them. */
class Pipe {
  readonly #to: Socket;
  readonly #dice: Dice;
  readonly #waiting: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  weather: Weather = 'calm';

  constructor(from: Socket, to: Socket, dice: Dice) {
    this.#to = to;
    this.#dice = dice;
    from.on('data', (chunk: Buffer) => {
      this.#waiting.push(chunk);
      this.go();
    });
    from.on('end', () => {
      this.#ended = true;
      this.go();
    });
  }

  go(): void {
    if (this.#timer !== undefined || this.weather === 'black_hole') return;
    const chunk = this.#waiting.shift();
    if (chunk === undefined) {
      if (this.#ended) this.#to.end();
      return;
    }
    if (this.weather === 'calm') {
      this.#to.write(chunk);
      return this.go();
    }
    const size = this.weather === 'sliced' ? this.#dice.int(1, SLICE_MAX_BYTES) : chunk.length;
    const waitMs = this.weather === 'slow' ? this.#dice.int(1, SLOW_MAX_MS) : this.#dice.int(0, 2);
    if (chunk.length > size) this.#waiting.unshift(chunk.subarray(size));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#to.write(chunk.subarray(0, size));
      this.go();
    }, waitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** A loopback proxy in front of a unix socket, that delays, slices, swallows and cuts by a seed. */
export async function startProxy(path: string, seed: number): Promise<Proxy> {
  const dice = new Dice(seed, 77);
  const seen: Record<Weather, number> = { calm: 0, slow: 0, sliced: 0, black_hole: 0, cut: 0 };
  const links = new Map<Socket, readonly Pipe[]>();
  let weather: Weather = 'calm';

  const server = createServer((near) => {
    const far = connect(path);
    const pipes = [new Pipe(near, far, dice), new Pipe(far, near, dice)];
    for (const pipe of pipes) pipe.weather = weather;
    links.set(near, pipes);
    const end = (): void => {
      links.delete(near);
      for (const pipe of pipes) pipe.stop();
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', end);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    port: (server.address() as AddressInfo).port,
    seen,
    become: (next) => {
      seen[next]++;
      weather = next === 'cut' ? 'calm' : next;
      for (const [socket, pipes] of links) {
        // What a hole has swallowed does not come out of it: the connection is over, as after a lost route.
        if (next === 'cut' || pipes.some((pipe) => pipe.weather === 'black_hole' && next !== 'black_hole'))
          socket.destroy();
        for (const pipe of pipes) {
          pipe.weather = weather;
          pipe.go();
        }
      }
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of links.keys()) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
