/** Whether the tool of a call ran, as far as can be known. */
export type Effect = 'ran' | 'did_not_run' | 'may_have_run';

/** How a model is told. */
export const EFFECT_SENTENCES: Readonly<Record<Effect, string>> = {
  ran: 'The tool ran.',
  did_not_run: 'The tool did not run.',
  may_have_run: 'The tool may have run and taken effect.',
};
