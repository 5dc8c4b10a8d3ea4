/** How much a model keeps; beyond that the oldest makes room, and is counted. */
export interface TraceLimits {
  /** Turns. Default 500. */
  readonly turns?: number;
  /** Nodes of one turn. Default 20,000; those beyond are counted. */
  readonly nodes?: number;
  /** Calls in all. Default 20,000; turns make room before calls outside of turns do. */
  readonly calls?: number;
  /** Attempts of one call. Default 200. */
  readonly attempts?: number;
  /** Signs of one node. Default 1,000. */
  readonly marks?: number;
  /** Breakers. Default 500. */
  readonly breakers?: number;
  /** Changes of one breaker. Default 500. */
  readonly changes?: number;
  /** Events as they came. Default 2,000. */
  readonly events?: number;
}
