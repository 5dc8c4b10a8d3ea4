import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { firstValueFrom, race } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { signalGroup, spawnGroup, type LaunchCommand, type PipedChild } from './process-group.ts';
import { StderrTail } from './stderr-tail.ts';

/** How long a server has to end after its input did, and again after SIGTERM. The SDK's transport gives 2,000. */
const GRACE_MS = 1_000;
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
  readonly #buffer: ReadBuffer;
  #child: PipedChild | undefined;
  #fault: Error | undefined;
  #closing: Promise<void> | undefined;
  #end: (how: Error) => void = () => undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#buffer = new ReadBuffer({ maxBufferSize: options.maxMessageBytes });
    this.stderr = new StderrTail(options.stderrLines);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
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
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      // A message without an end: nothing after it can be understood.
      this.#fault = asError(error);
      this.onerror?.(this.#fault);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no message, such as a server's own print: it is passed over.
        this.onerror?.(asError(error));
      }
    }
  }

  #finish(how: Error): void {
    this.#buffer.clear();
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
