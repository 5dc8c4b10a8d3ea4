import { ToolExecutionError } from '../../../contract/tool-error.ts';
import type { Task } from '../../time.ts';
import type { Expiring, StormDeadlines } from './deadlines.ts';
import type { Asker, Server } from '../server.ts';
import type { StormTally } from '../tally.ts';

/** What an attempt knows of its tool. */
interface Asked {
  readonly deadlines: StormDeadlines;
  readonly server: Server;
  readonly acts: boolean;
}

const LATE = new ToolExecutionError('timeout', 'the tool did not answer in time', { uncertain: true });

/** One attempt: its server or its deadline ends it, whichever comes first. */
export class Attempt implements Asker, Expiring, Task {
  readonly key: string;
  readonly #tool: Asked;
  readonly #tally: StormTally;
  readonly #ended: (error?: ToolExecutionError) => void;
  #question: Task | undefined;
  #deadline: Task | undefined;
  #over = false;

  constructor(
    { key, tool }: { readonly key: string; readonly tool: Asked },
    tally: StormTally,
    ended: (error?: ToolExecutionError) => void,
  ) {
    this.key = key;
    this.#tool = tool;
    this.#tally = tally;
    this.#ended = ended;
  }

  begin(): void {
    this.#deadline = this.#tool.deadlines.add(this);
    this.#question = this.#tool.server.ask(this);
  }

  acted(): void {
    if (this.#tool.acts) this.#tally.acted(this.key);
  }

  expired(): void {
    this.answered(LATE);
  }

  answered(error?: ToolExecutionError): void {
    if (this.#over) return;
    this.cancel();
    this.#ended(error);
  }

  cancel(): void {
    this.#over = true;
    this.#deadline?.cancel();
    this.#question?.cancel();
  }
}
