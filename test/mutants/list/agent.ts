import type { MutatedFile } from '../mutant.ts';

/** The agent's loop and its transcript. Written from the source alone, before looking which tests there are. */
export const AGENT: readonly MutatedFile[] = [
  {
    file: 'agent/loop/evidence.ts',
    mutants: [
      [
        'a success settles what earlier attempts left open',
        "this.#end('ran');",
        "this.#end(graver(this.#effect, 'ran'));",
      ],
      [
        'a call that was seen to begin and not to end may have run',
        'isOver && !this.#running ? this.#effect',
        'isOver ? this.#effect',
      ],
      [
        'two calls of one id that came to different ends may have run',
        "=== effect ? effect : 'may_have_run'",
        '=== effect ? effect : effect',
      ],
    ],
  },
  {
    file: 'agent/loop/guard.ts',
    mutants: [
      ['the call of this number is not made', 'times + 1 < this.#limits.blockAt', 'times < this.#limits.blockAt'],
      [
        'another result is no repetition',
        'before?.result === result ? before.times + 1 : 1',
        '(before?.times ?? 0) + 1',
      ],
      [
        'the call of this number says that it is a repetition',
        'times < this.#limits.warnAt',
        'times <= this.#limits.warnAt',
      ],
    ],
  },
  {
    file: 'agent/loop/stored-outputs.ts',
    mutants: [
      [
        'the output read longest ago makes room',
        'texts.delete(handle);\n      texts.set(handle, text);\n      return text;',
        'return text;',
      ],
      ['a piece begins with a whole character', 'isInsidePair(text, offset) ? offset - 1 : ', ''],
      ['room that was made is counted', 'chars -= text.length;', ''],
    ],
  },
  {
    file: 'agent/loop/transcript.ts',
    mutants: [
      [
        'without evidence a call may have run',
        "this.#evidence.get(call.id) ?? 'may_have_run'",
        "this.#evidence.get(call.id) ?? 'did_not_run'",
      ],
      ['two calls of one id get two ids', "from === '' || seen.has(from) ?", "from === '' ?"],
    ],
  },
  {
    file: 'agent/loop/admission.ts',
    mutants: [
      ['so many calls in a turn and no more', 'if (places-- <= 0)', 'if (places-- < 0)'],
      ['who needs what is not made is not made', 'if (refers) refuseDependents(needs, refusals);', ''],
    ],
  },
];
