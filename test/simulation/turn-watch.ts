import type { TurnOwnEvent } from '../../src/contract/event.ts';
import type { NodeState, TurnResult } from '../../src/contract/turn.ts';
import type { CallWatch } from './call-watch.ts';
import type { Findings, InvariantId } from './findings.ts';
import type { NodeSpec, TurnOperation } from './scenario.ts';

type Of<T extends TurnOwnEvent['type']> = Extract<TurnOwnEvent, { type: T }>;

/** A node as the trace tells of it. */
interface NodeWatch {
  readonly spec: NodeSpec;
  started: boolean;
  state: NodeState | undefined;
  call: CallWatch | undefined;
}

const hasValue = (state: NodeState | undefined): boolean => state === 'succeeded' || state === 'defaulted';

/** One turn, held against what must be true of every turn. */
export class TurnWatch {
  readonly operation: TurnOperation;
  readonly startedMs: number;
  turnId = '';
  result: TurnResult | undefined;
  /** The last event before its subscriber had gone. */
  goneSeq: number = Infinity;
  readonly #findings: Findings;
  readonly #now: () => number;
  readonly #nodes: Map<string, NodeWatch>;
  #running = 0;
  #deadlineTold = false;

  constructor(operation: TurnOperation, findings: Findings, now: () => number) {
    this.operation = operation;
    this.#findings = findings;
    this.#now = now;
    this.startedMs = now();
    this.#nodes = new Map(
      operation.nodes.map((spec) => [spec.id, { spec, started: false, state: undefined, call: undefined }]),
    );
  }

  get deadlineMs(): number {
    return this.startedMs + this.operation.timeoutMs;
  }

  get over(): boolean {
    return this.result !== undefined || this.goneSeq < Infinity;
  }

  get calls(): CallWatch[] {
    return [...this.#nodes.values()].flatMap(({ call }) => call ?? []);
  }

  node(id: string | undefined): NodeSpec | undefined {
    return id === undefined ? undefined : this.#nodes.get(id)?.spec;
  }

  calling(nodeId: string | undefined, call: CallWatch): void {
    const node = this.#nodes.get(nodeId ?? '');
    this.#check(node !== undefined && node.call === undefined, 'DAG-1', () => `a second call of ${nodeId}`);
    if (node !== undefined) node.call = call;
    call.goneSeq = this.goneSeq;
  }

  #check(holds: boolean, invariant: InvariantId, message: () => string): void {
    if (holds) return;
    this.#findings.check(false, invariant, () => `turn ${this.operation.n}: ${message()}`);
  }

  event(event: TurnOwnEvent): void {
    const gone = event.type === 'abandoned' || event.seq <= this.goneSeq;
    this.#check(this.result === undefined && gone, 'TRC-1', () => `${event.type} after its end`);
    switch (event.type) {
      case 'turn_started':
        this.turnId = event.turnId;
        return undefined;
      case 'node_started':
        return this.#started(event);
      case 'node_settled':
        return this.#settledNode(event);
      case 'deadline':
        this.#deadlineTold = true;
        // Whoever leaves later leaves detached work behind.
        if (event.onDeadline === 'detach' && this.goneSeq === Infinity)
          for (const call of this.calls) call.late ||= !call.settled && call.begun;
        return this.#check(this.#now() >= this.deadlineMs, 'TURN-1', () => 'its deadline comes too early');
      case 'abandoned':
      case 'turn_moved':
      case 'turn_left':
      // Turns of this world undo nothing: `settle.ts` is about those.
      case 'compensation_started':
      case 'node_verified':
      case 'node_compensated':
      case 'compensation_settled':
        return undefined;
      case 'escalated':
        return this.#findings.saw('required node skipped');
      case 'settled':
        return this.#settled(event.result, event.seq);
    }
  }

  /** Virtual time is about to go on. */
  leaving(now: number): void {
    if (this.over) return;
    this.#check(now < this.deadlineMs, 'TURN-1', () => `it runs on ${now - this.deadlineMs} ms after its deadline`);
    for (const node of this.#nodes.values()) {
      if (node.started || node.state !== undefined || !this.#ready(node)) continue;
      if (this.#running >= this.operation.concurrency) this.#findings.saw('ready node waits for a place');
      this.#check(
        this.#running >= this.operation.concurrency,
        'DAG-3',
        () => `${node.spec.id} is ready and waits while ${this.#running} of ${this.operation.concurrency} run`,
      );
    }
  }

  /** Every call that was under way is now nobody's. */
  abandoned(seq: number): void {
    this.goneSeq = seq;
    for (const call of this.calls) if (!call.settled && !call.late) call.goneSeq = seq;
  }

  /** What its own subscriber was told in the end. */
  told(result: TurnResult): void {
    for (const { spec, state, call } of this.#nodes.values()) {
      if (!hasValue(state) || call?.succeeded === undefined) continue;
      const content = result.values[spec.id] as
        | { readonly n?: number; readonly tool?: string; readonly attempt?: number }
        | undefined;
      const { n, tool, attempt } = call.succeeded;
      this.#check(
        content?.n === n && content.tool === tool && content.attempt === attempt,
        'RES-3',
        () => `the value of ${spec.id} is ${JSON.stringify(content)}, its call gave ${JSON.stringify(call.succeeded)}`,
      );
    }
  }

  #ready({ spec }: NodeWatch): boolean {
    return spec.needs.every((need) => this.#nodes.get(need)?.state !== undefined);
  }

  #lacks({ spec }: NodeWatch): boolean {
    return spec.needs.some((need) => !hasValue(this.#nodes.get(need)?.state));
  }

  #started({ nodeId }: Of<'node_started'>): void {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return this.#check(false, 'DAG-1', () => `${nodeId} is no node`);
    this.#check(!node.started && node.state === undefined, 'DAG-1', () => `${nodeId} starts twice`);
    this.#check(this.#ready(node), 'DAG-1', () => `${nodeId} starts before its needs have settled`);
    this.#check(!this.#lacks(node) || node.spec.hasDefault, 'DAG-1', () => `${nodeId} starts though a need failed`);
    this.#check(this.#now() < this.deadlineMs, 'DL-1', () => `${nodeId} starts after the deadline`);
    if (this.#lacks(node)) this.#findings.saw('node ran with a default');
    node.started = true;
    this.#running++;
    this.#check(
      this.#running <= this.operation.concurrency,
      'DAG-3',
      () => `${this.#running} nodes run, ${this.operation.concurrency} allowed`,
    );
  }

  #settledNode({ nodeId, state }: Of<'node_settled'>): void {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return;
    this.#check(node.state === undefined, 'RES-1', () => `${nodeId} settles twice`);
    node.state = state;
    if (node.started) this.#running--;
    const { call } = node;
    const own = state !== 'timed_out' && state !== 'canceled';
    if (state === 'skipped') {
      this.#findings.saw('node skipped');
      this.#check(
        !node.started && call === undefined && this.#lacks(node) && !node.spec.hasDefault,
        'DAG-2',
        () => `${nodeId} is skipped`,
      );
    }
    if (state === 'succeeded' || state === 'defaulted') {
      this.#check(call?.succeeded !== undefined, 'RES-3', () => `${nodeId} is ${state} without a success`);
      this.#check((state === 'defaulted') === this.#lacks(node), 'DAG-2', () => `${nodeId} is ${state}`);
    }
    if (state === 'failed')
      this.#check(call?.settled === true && call.succeeded === undefined, 'RES-3', () => `${nodeId} is failed`);
    // A good result from before the deadline is never downgraded.
    if (!own)
      this.#check(
        call?.succeeded === undefined || !call.settled,
        'TURN-2',
        () => `${nodeId} is ${state} though its call had succeeded`,
      );
  }

  #settled(result: TurnResult, seq: number): void {
    const { nodes } = this.operation;
    this.result = result;
    this.#check(
      result.nodes.length === nodes.length && result.nodes.every(({ id }, i) => id === nodes[i]?.id),
      'RES-2',
      () => `its results are of ${result.nodes.map(({ id }) => id).join()}`,
    );
    this.#check(
      result.nodes.every(({ id, state }) => state === this.#nodes.get(id)?.state),
      'TRC-2',
      () => 'a node’s state is not the one that was told',
    );
    if (nodes.length === 0) this.#findings.saw('empty turn');
    for (const { spec, state, call } of this.#nodes.values()) {
      if (call === undefined) continue;
      if (call.succeeded !== undefined && call.settled)
        this.#check(hasValue(state), 'TURN-2', () => `${spec.id} is ${state} though its call succeeded`);
      if (call.settled) continue;
      if (this.#deadlineTold && call.backsOffUntilMs !== undefined) this.#findings.saw('deadline in a backoff');
      if (!call.late) call.goneSeq = seq;
    }
    this.#check(
      result.status === this.#status(),
      'TRC-2',
      () => `its status is ${result.status}, expected ${this.#status()}`,
    );
    const most = this.calls.filter(({ physical }) => physical > 0).length;
    const least = this.calls.filter(({ succeeded }) => succeeded !== undefined).length;
    this.#check(
      result.executedTools >= least && result.executedTools <= most,
      'TRC-2',
      () => `it counts ${result.executedTools} executed tools, ${least} to ${most} were`,
    );
  }

  /** worked out here once more. */
  #status(): TurnResult['status'] {
    const all = [...this.#nodes.values()];
    if (all.every(({ state }) => hasValue(state))) return 'completed';
    if (this.result?.executedTools === 0) return 'failed';
    const missing = all.some(({ spec, state }) => {
      if (spec.optional || (state !== 'failed' && state !== 'skipped')) return false;
      if (state === 'skipped') return true;
      const after = all.filter((other) => other.spec.needs.includes(spec.id));
      return (
        after.length === 0 || !after.every((other) => other.spec.optional || (other.started && other.spec.hasDefault))
      );
    });
    return missing ? 'escalated' : 'partial';
  }
}
