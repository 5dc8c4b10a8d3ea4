/**
 * Mistakes of a host or a layer. `no_verify`: what is uncertain is made again without a question. `early`: no time for
 * what comes late. `denies`, `hopes`: it answers no, or yes, whatever was booked. `other_key`: the key of the attempt,
 * so that nobody finds what another has booked. `no_claim`: each process has a store of its own. `swallows`: what failed
 * is told as made. `other_amount`: a retry makes another transfer. `refuses`: nothing is made at all.
 */
export const PLANTS = [
  'no_verify',
  'early',
  'denies',
  'hopes',
  'other_key',
  'no_claim',
  'swallows',
  'other_amount',
  'refuses',
] as const;

export type Plant = (typeof PLANTS)[number];
