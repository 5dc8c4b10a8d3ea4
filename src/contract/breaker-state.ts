/** What the breaker of a tool can be in. */
export type BreakerStateName = 'closed' | 'open' | 'half_open' | 'forced_open' | 'disabled';
