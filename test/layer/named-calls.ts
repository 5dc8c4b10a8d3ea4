import { firstValueFrom, map } from 'rxjs';
import type { ToolResultEnvelope } from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

/** A world in virtual time of which a trace is made: each call of interest has a name of ours. */
export class NamedCalls {
  readonly runtime: VirtualRuntime;
  readonly results: Map<string, ToolResultEnvelope> = new Map();

  constructor(seed: number) {
    this.runtime = virtualRuntime({ seed });
  }

  after<T>(ms: number, value: T): Promise<T> {
    return firstValueFrom(this.runtime.after(ms).pipe(map(() => value)));
  }

  id(name: string): string {
    const result = this.results.get(name);
    if (result === undefined) throw new Error(`${name} has not settled`);
    return result.requestId;
  }

  pass(ms: number): Promise<void> {
    return this.runtime.advance(ms);
  }
}
