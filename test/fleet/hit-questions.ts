import { firstValueFrom } from 'rxjs';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import type { HandFleet, HandWorker } from './by-hand.ts';

/** What becomes of one question of a worker to what all share. */
export type Fault =
  /** It fails at once, and nobody has heard it. */
  | 'refused'
  /** It was heard, and its answer is lost. */
  | 'lost'
  /** Nobody hears it, which is known when its time is over. */
  | 'hangs'
  /** It is heard when nobody waits for it any more. */
  | 'late'
  /** The worker dies before it is heard, or behind it. */
  | 'dies'
  | 'dies behind it'
  /** The worker stands still before it is heard, or behind it. */
  | 'freezes'
  | 'freezes behind it';

export const FAULTS: readonly Fault[] = [
  'refused',
  'lost',
  'hangs',
  'late',
  'dies',
  'dies behind it',
  'freezes',
  'freezes behind it',
];

/** Which question of which worker is hit, from 1. */
export interface Hit {
  readonly worker: 'one' | 'two';
  readonly question: number;
  readonly fault: Fault;
}

const SILENT_MS = 5_000;
const LATE_MS = 3_500;
const FROZEN_MS = 6_000;

/** What was asked last of what all share. */
export interface Said {
  name: string;
}

/** The same object, which says what it was asked. */
export const saying = <T extends object>(shared: T, said: Said): T =>
  new Proxy(shared, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return (...given: unknown[]): unknown => {
        const [about] = given;
        const isClaim = typeof about === 'object' && about !== null && 'tool' in about;
        said.name = isClaim ? `${name} ${String(about.tool)}` : name;
        return Reflect.apply(member, target, given) as unknown;
      };
    },
  });

/** Makes the questions of a worker go wrong that are hit; gives what it has asked, in order. */
export const hitBy = (
  { runtime }: HandFleet,
  { machine }: HandWorker,
  hits: readonly Hit[],
  said: Said,
): readonly string[] => {
  const ask = machine.ask.bind(machine);
  const names: string[] = [];
  const unanswered = async (afterMs: number): Promise<never> => {
    await firstValueFrom(machine.runtime.after(afterMs));
    throw new ToolExecutionError('store_unavailable', 'no answer');
  };
  const struck = async <T>(fault: Fault | undefined, heard: () => Promise<T>): Promise<T> => {
    if (fault === 'refused') return unanswered(1);
    if (fault === 'hangs') return unanswered(SILENT_MS);
    if (fault === 'late') {
      runtime.after(LATE_MS).subscribe(() => void heard());
      return unanswered(SILENT_MS);
    }
    if (fault === 'dies') machine.kill();
    if (fault === 'freezes') machine.freeze(FROZEN_MS);
    const answer = await ask(async () => {
      const given = await heard();
      if (fault === 'dies behind it') machine.kill();
      if (fault === 'freezes behind it') machine.freeze(FROZEN_MS);
      return given;
    });
    return fault === 'lost' ? unanswered(1) : answer;
  };
  machine.ask = <T>(given: () => T | PromiseLike<T>): Promise<T> => {
    const question = names.push('not heard');
    const heard = async (): Promise<T> => {
      said.name = 'ledger';
      const answer = await given();
      return answer;
    };
    const named = (): Promise<T> => {
      const answer = heard();
      names[question - 1] = said.name;
      return answer;
    };
    return struck(hits.find((hit) => hit.question === question)?.fault, named);
  };
  return names;
};
