/**
 * What became of a call's idempotency key. `claimed`: the call runs. `taken_over`: it runs where another lost its
 * lease. `waiting`: another runs. `replayed`: the call got the other's result. `conflict`: the key stands for other
 * parameters, which is an alarm. `busy`: the call is refused, since another runs. `lease_lost`: another may run now.
 * `recorded`, `released`: the claim ended. `superseded`: the outcome was refused, since another holds the key.
 * `unrecorded`: the outcome could not be stored. `unprotected`: the call runs without a store.
 */
export type DedupeStep =
  | 'claimed'
  | 'taken_over'
  | 'waiting'
  | 'replayed'
  | 'conflict'
  | 'busy'
  | 'lease_lost'
  | 'recorded'
  | 'released'
  | 'superseded'
  | 'unrecorded'
  | 'unprotected';
