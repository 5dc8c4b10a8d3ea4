import { deserializeMessage, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { EMPTY, Subject, concatMap, firstValueFrom, race } from 'rxjs';
import type { Runtime } from '../../../contract/runtime.ts';
import { abortable } from '../../../operators/work/abortable.ts';
import { LineReader, type LongLine } from './line-reader.ts';
import { longAnswer } from './long-message.ts';
import { signalGroup, spawnGroup, type LaunchCommand, type PipedChild } from './process-group.ts';
import { StderrTail } from './stderr-tail.ts';

/** How long a server has to end after its input did, and again after SIGTERM. The SDK's transport gives 2,000. */
const GRACE_MS = 1_000;
/** A line that goes on for so many times what is read has no end. */
const ENDLESS_FACTOR = 10;
/** How long the streams of a server that has exited may stay open: what it left outside its group can hold them. */
const DRAIN_MS = 500;

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

interface StdioOptions extends LaunchCommand {
  readonly stderrLines: number;
  readonly maxMessageBytes: number;
  /** Told each line that the server writes on stderr. */
  readonly heard?: (line: string) => void;
  readonly runtime: Runtime;
}

/**
 * MCP over a child process's stdin and stdout. The SDK's own transport signals the process it started and no other, so
 * an `npx` takes the signal and its server lives on; it prints the server's stderr on ours; and it cannot say how the
 * server ended.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly stderr: StderrTail;
  /** Resolves once the server has ended and its output is read, with an error that says how. */
  readonly ended: Promise<Error>;
  readonly #options: StdioOptions;
  readonly #lines: LineReader;
  /** What is to be done about lines, each once what the one before had heard is looked at. */
  readonly #step$ = new Subject<() => Promise<void> | undefined>();
  #child: PipedChild | undefined;
  #fault: Error | undefined;
  #closing: Promise<void> | undefined;
  #end: (how: Error) => void = () => undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#lines = new LineReader(options.maxMessageBytes);
    this.stderr = new StderrTail(options.stderrLines);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#step$.pipe(concatMap((step) => step() ?? EMPTY)).subscribe();
  }

  /** The process that was started; its server may be a child of it. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = spawnGroup(this.#options);
      this.#child = child;
      child.once('spawn', resolve);
      child.once('error', (error) => {
        reject(error);
        this.#finish(error);
      });
      child.once('exit', (code, signal) => {
        const how =
          this.#fault ??
          new Error(signal === null ? `the server exited with code ${code}` : `the server was ended by ${signal}`);
        child.once('close', () => this.#finish(how));
        void this.#wait(DRAIN_MS).then(() => this.#abandonStreams(child));
      });
      child.stdin.on('error', (error) => this.onerror?.(error));
      child.stdout.on('error', (error) => this.onerror?.(error));
      child.stderr.on('error', (error) => this.onerror?.(error));
      child.stdout.on('data', (chunk: Buffer) => this.#receive(chunk));
      child.stderr.on('data', (chunk: Buffer) => {
        for (const line of this.stderr.add(chunk)) this.#options.heard?.(line);
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.#child?.stdin;
      if (stdin === undefined || !stdin.writable) return reject(new Error('Not connected'));
      stdin.write(serializeMessage(message), (error) =>
        error === null || error === undefined ? resolve() : reject(error),
      );
    });
  }

  /** Stops reading: a server that writes more than is wanted waits, as a pipe has it. */
  pause(): void {
    this.#child?.stdout.pause();
  }

  resume(): void {
    this.#child?.stdout.resume();
  }

  /** Ends the server: its input, then SIGTERM, then SIGKILL, for its whole process group. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#stop();
    return this.#closing;
  }

  async #stop(): Promise<void> {
    const { pid, stdin } = this.#child ?? {};
    if (pid === undefined) return;
    stdin?.end();
    if (await this.#endsWithin(GRACE_MS)) return;
    signalGroup(pid, 'SIGTERM');
    if (await this.#endsWithin(GRACE_MS)) return;
    signalGroup(pid, 'SIGKILL');
    await this.ended;
  }

  #receive(chunk: Buffer): void {
    if (this.#fault !== undefined) return;
    const { maxMessageBytes } = this.#options;
    for (const line of this.#lines.read(chunk)) this.#step$.next(() => this.#take(line));
    const endlessBytes = maxMessageBytes * ENDLESS_FACTOR;
    if (this.#lines.pendingBytes > endlessBytes)
      this.#step$.next(() => this.#fail(`a line without an end: more than ${endlessBytes} bytes`));
  }

  /** Hands on a message. Resolves once the next one may be; gives nothing where that is at once. */
  #take(line: Buffer | LongLine): Promise<void> | undefined {
    // What hears of a message may have ended the connection.
    if (this.#fault !== undefined) return undefined;
    try {
      const message = Buffer.isBuffer(line) ? deserializeMessage(line.toString('utf8')) : this.#long(line);
      if (message !== undefined) this.onmessage?.(message);
      // Both SDKs look at a notification in a microtask: one that came in one piece with the answer was too late.
      if (message !== undefined && 'method' in message) return Promise.resolve();
    } catch (error) {
      // A line that is no message, such as a server's own print: it is passed over.
      this.#tell(asError(error));
    }
    return undefined;
  }

  /** What a listener throws is its host's, and does not end the reading of what is said after it. */
  #tell(error: Error): void {
    try {
      this.onerror?.(error);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }

  #long(line: LongLine): JSONRPCMessage | undefined {
    const { maxMessageBytes } = this.#options;
    const answer = longAnswer(line, maxMessageBytes);
    if (answer === undefined) this.#fail(`a message of ${line.bytes} bytes, over the maximum of ${maxMessageBytes}`);
    return answer;
  }

  /** What the server said cannot be understood, nor what it says after it. */
  #fail(why: string): undefined {
    if (this.#fault !== undefined) return;
    this.#fault = new Error(why);
    this.#lines.clear();
    this.onerror?.(this.#fault);
    void this.close();
  }

  #finish(how: Error): void {
    this.#lines.clear();
    this.#end(how);
    this.onclose?.();
  }

  #abandonStreams({ stdin, stdout, stderr }: PipedChild): void {
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
  }

  #wait(ms: number): Promise<unknown> {
    return firstValueFrom(
      race(
        abortable(() => this.ended),
        (this.#options.runtime.background ?? this.#options.runtime).after(ms),
      ),
    );
  }

  async #endsWithin(ms: number): Promise<boolean> {
    return (await this.#wait(ms)) !== 0;
  }
}
