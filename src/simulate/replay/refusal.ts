/**
 * Why a trace is not replayed. `empty`: no events. `torn`: lines of the file cannot be read, or it says that events
 * were lost. `late`: it begins after its layer did. `merged`: it is of more than one layer. `incomplete`: events are
 * missing in between. `truncated`: it ends before its calls do. `changed`: its lines are not those that were written.
 * `malformed`: an event is not what the package writes. `old`: a version wrote it that told too little. `host`: code of
 * the host's decided, which no trace holds. `settled`: a tool's `verify` or `compensate` was asked. `moved`: the turn
 * began in another process. `keys`: calls ran under keys, and what their store knew is not in it. `switched`: a switch
 * was thrown while it was recorded. `unlisted`: a call brought a tool along whose policy is not in it, or two of one
 * name. `different`: the recorded policies do not decide what it says they did.
 */
export type RefusalCode =
  | 'empty'
  | 'torn'
  | 'late'
  | 'merged'
  | 'incomplete'
  | 'truncated'
  | 'changed'
  | 'malformed'
  | 'old'
  | 'host'
  | 'keys'
  | 'switched'
  | 'settled'
  | 'moved'
  | 'unlisted'
  | 'different';

/** A trace from which nothing can be said: no number is given for it. */
export class ReplayRefusal extends Error {
  /** Always `ReplayRefusal`. */
  override readonly name: string = 'ReplayRefusal';
  /** Why, for programs. */
  readonly code: RefusalCode;
  /** The `seq` of the event that it is about; absent where it is about no single one. */
  readonly seq: number | undefined;
  constructor(code: RefusalCode, message: string, seq?: number) {
    super(message);
    this.code = code;
    this.seq = seq;
  }
}
