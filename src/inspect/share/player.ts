/** What is the same in every marble test: the layer that plays a turn, and how its events become letters. */
export const PLAYER: string = `const LETTERS: Readonly<Record<string, string>> = {
  succeeded: 'v', skipped: 'k', defaulted: 'd', timed_out: 't' };

/** The layer, with tools that do as their tries say. */
const play = (scheduler: TestScheduler): Spillway => {
  const nodeOf = new Map<string, string>();
  const tried = new Map<string, number>();
  const decided = new Map<string, number>();
  const next = <T>(
    lists: Readonly<Record<string, readonly T[]>>,
    counts: Map<string, number>,
    node: string,
  ): T | undefined => {
    const count = counts.get(node) ?? 0;
    counts.set(node, count + 1);
    return lists[node]?.[count];
  };
  const coming = (node: string) => tries[node]?.[tried.get(node) ?? 0];
  /** Opens the breaker of a tool where the trace tells of a refusal. */
  const pin = (toolName: string, node: string): void => {
    if (!tools.some(({ name, policy }) => name === toolName && policy.breaker !== false)) return;
    const breaker = spillway.breakers.get(toolName);
    if (coming(node)?.refused === true) breaker.forceOpen();
    else breaker.reset();
  };
  const later = <T>(value: T, ms: number): Observable<T> => (ms > 0 ? of(value).pipe(delay(ms, scheduler)) : of(value));
  const spillway = createSpillway({
    tools: tools.map((tool) =>
      scriptedTool(
        {
          ...tool,
          script: (input) => ({ as: 'observable', ...(next(tries, tried, String(input)) ?? { hangs: true }) }),
        },
        scheduler,
      ),
    ),
    runtime: runtimeOn(scheduler),
    retryBudget: false,
    hookTimeoutMs: 3_600_000,
    errorHandlerTimeoutMs: 3_600_000,
    hooks: {
      prepareCall: ({ callId, nodeId = '', toolName }) => {
        nodeOf.set(callId, nodeId);
        const { refused = false, heldMs = 0 } = coming(nodeId) ?? {};
        return later(undefined, refused ? heldMs : 0).pipe(tap(() => pin(toolName, nodeId)));
      },
      beforeToolCall: ({ nodeId = '' }) => later(undefined, coming(nodeId)?.heldMs ?? 0),
    },
    errorHandler: ({ callId, error, toolName }) => {
      const node = nodeOf.get(callId) ?? '';
      if (error.kind === 'circuit_open') {
        next(tries, tried, node);
        spillway.breakers.get(toolName).reset();
      }
      const told = next(decisions, decided, node);
      // Nothing was decided before the turn's end.
      if (told === undefined) return NEVER;
      const { afterMs = 0, ...decision } = told;
      if (decision.strategy === 'alternative') pin(decision.toolName ?? '', node);
      else if (decision.strategy === 'retry')
        scheduler.schedule(() => pin(toolName, node), afterMs + (decision.delayMs ?? 0));
      return afterMs > 0 ? later(decision, afterMs) : decision;
    },
  });
  return spillway;
};

/** What an event is in the rows, and in which: the turn's, its node's, or its try's. */
const lettersOf = () => {
  const tryOf = new Map<string, number>();
  return (event: TurnEvent): ReadonlyArray<readonly [row: string, letter: string]> => {
    if (event.source === 'turn') {
      if (event.type === 'deadline') return [['turn', 'd']];
      if (event.type === 'settled') return [['turn', event.result.status.charAt(0)]];
      if (event.type === 'node_started') return [[event.nodeId, 'n']];
      if (event.type === 'node_settled') return [[event.nodeId, LETTERS[event.state] ?? event.state.charAt(0)]];
      return [];
    }
    const node = event.nodeId ?? '';
    const row = (): string => \`\${node} #\${tryOf.get(node) ?? 0}\`;
    if (event.type === 'attempt_started' || event.type === 'rejected') tryOf.set(node, (tryOf.get(node) ?? 0) + 1);
    if (event.type === 'attempt_started') return [[row(), 's']];
    if (event.type === 'rejected') return [[row(), 'r']];
    if (event.type === 'attempt_succeeded') return [[row(), 'v']];
    if (event.type === 'attempt_failed') return [[row(), event.error.kind === 'timeout' ? 't' : 'x']];
    return [];
  };
};

/** One row of the turn; only the turn's own ends. */
const rowOf = (turn$: Observable<TurnEvent>, row: string): Observable<string> => {
  const letters = lettersOf();
  return turn$.pipe(
    mergeMap((event) => letters(event)),
    filter(([of]) => of === row),
    map(([, letter]) => letter),
    concatWith(row === 'turn' ? EMPTY : NEVER),
  );
};
`;
