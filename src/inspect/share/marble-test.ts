import type { ToolInForce } from '../../contract/event.ts';
import type { AttemptTold, TraceModel, TurnTold } from '../model.ts';
import { marbleRow } from './marble-row.ts';
import { objectionToPlay } from './playable.ts';
import { PLAYER } from './player.ts';
import { playedTurn, type PlayedNode, type PlayedTry, type PlayedTurn } from './played.ts';

/** A turn as a test, or why it cannot be one. */
export type MarbleTest =
  | {
      /** The test, for vitest: a file of TypeScript. */
      readonly code: string;
    }
  | {
      /** Why the turn cannot be played again, as a sentence. */
      readonly refused: string;
    };

/** A value as source text. */
const source = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const errorSource = ({ error, classification }: AttemptTold, executed: boolean): string => {
  const { kind = 'unknown', message = '', code, status, retryAfterMs, uncertain } = error ?? {};
  const options = { code, status, retryAfterMs, uncertain, classification, ...(executed ? {} : { executed }) };
  return `new ToolExecutionError(${source(kind)}, ${source(message)}, ${source(options)})`;
};

const heldSource = (heldMs: number): string => (heldMs > 0 ? `heldMs: ${heldMs}, ` : '');

const trySource = (one: PlayedTry, executed: boolean): string => {
  switch (one.does) {
    case 'refuse':
      return `{ ${heldSource(one.heldMs)}refused: true }`;
    case 'hang':
      return `{ ${heldSource(one.heldMs)}hangs: true }`;
    case 'answer':
      return `{ ${heldSource(one.heldMs)}afterMs: ${one.afterMs}, value: 'played' }`;
    case 'fail':
      return `{ ${heldSource(one.heldMs)}afterMs: ${one.afterMs}, error: ${errorSource(one.of, executed)} }`;
  }
};

const triesSource = ({ nodes }: PlayedTurn, executed: boolean): string =>
  nodes
    .filter(({ tries }) => tries.length > 0)
    .map(
      ({ nodeId, tries }) =>
        `  [${source(nodeId)}]: [\n${tries.map((one) => `    ${trySource(one, executed)},\n`).join('')}  ],\n`,
    )
    .join('');

const decisionsSource = ({ nodes }: PlayedTurn): string =>
  nodes
    .filter(({ decisions }) => decisions.length > 0)
    .map(({ nodeId, decisions }) => {
      const lines = decisions.map(({ decision: { strategy, code, reason, delayMs }, toolName, afterMs }) => {
        const wait = delayMs === undefined ? undefined : Math.round(delayMs);
        const told = { strategy, code, reason, delayMs: wait, toolName, ...(afterMs > 0 ? { afterMs } : {}) };
        return `    ${source(told)},\n`;
      });
      return `  [${source(nodeId)}]: [\n${lines.join('')}  ],\n`;
    })
    .join('');

/** The tools that are asked, with the limits that were in force; of one that the trace does not tell, what shows. */
const toolsSource = (model: TraceModel, turn: TurnTold, { nodes }: PlayedTurn): string => {
  const attempts = turn.nodes.flatMap(({ call }) => call?.attempts ?? []);
  const others = attempts.map(({ toolName }) => toolName);
  const names = [...new Set([...nodes.map(({ toolName }) => toolName), ...others])];
  return names
    .map((name) => {
      const policy = policyOf(model.tools.get(name), name, turn, names);
      return `  { name: ${source(name)}, policy: ${policySource(policy)} },\n`;
    })
    .join('');
};

/** A breaker that never opens by itself: JSON has no word for that. */
const policySource = (policy: Readonly<Record<string, unknown>>): string =>
  source(policy).replace('"breaker":"pinned"', '"breaker":{"failureThreshold":Infinity,"failureRate":Infinity}');

const policyOf = (
  tool: ToolInForce | undefined,
  name: string,
  turn: TurnTold,
  names: readonly string[],
): Readonly<Record<string, unknown>> => {
  const calls = turn.nodes.flatMap(({ call }) => (call === undefined ? [] : [call]));
  const own = calls.flatMap(({ attempts }) => attempts.filter(({ toolName }) => toolName === name));
  const isRefused = own.some(({ outcome }) => outcome === 'rejected');
  const after = calls.flatMap(({ askedTool, attempts }) =>
    askedTool === name ? attempts.filter(({ alternative }) => alternative).map(({ toolName }) => toolName) : [],
  );
  const alternatives = [...new Set([...(tool?.policy?.alternatives ?? []), ...after])].filter((one) =>
    names.includes(one),
  );
  return {
    effects: 'read',
    timeoutMs: tool?.policy?.timeoutMs ?? 3_600_000,
    retry: { maxAttempts: 1_000, maxTotalTimeMs: 86_400_000 },
    breaker: isRefused ? 'pinned' : false,
    alternatives,
  };
};

const planSource = ({ nodes }: PlayedTurn): string =>
  nodes
    .map(({ nodeId, toolName, needs, optional, hasDefault }) => {
      const node = {
        id: nodeId,
        tool: toolName,
        input: nodeId,
        ...(needs.length > 0 ? { needs } : {}),
        ...(optional ? { optional } : {}),
        ...(hasDefault ? { default: 'default' } : {}),
      };
      return `    ${source(node)},\n`;
    })
    .join('');

const rowName = (node: PlayedNode, index: number): string => (index === 0 ? node.nodeId : `${node.nodeId} #${index}`);

const rowsSource = (turn: TurnTold, played: PlayedTurn): string => {
  const end = { frame: played.endMs };
  const whole = [
    ...(turn.deadlineMs === undefined ? [] : [{ ...end, letter: 'd' }]),
    { ...end, letter: turn.status.charAt(0) },
    { ...end, letter: '|' },
  ];
  const rows = played.nodes.flatMap((node) =>
    node.rows.map((row, index) => [rowName(node, index), marbleRow(row)] as const),
  );
  return [['turn', marbleRow(whole)] as const, ...rows]
    .map(([name, marbles]) => `  [${source(name)}, ${source(marbles)}],\n`)
    .join('');
};

const LEGEND = `// turn: d its deadline; c, p, e, f how it ended: completed, partial, escalated, failed.
// node: n it begins; v succeeded, d defaulted, f failed, k skipped, t timed out, c canceled.
// node #2: its second try: s an attempt starts, v a value, x an error, t a timeout, r refused without an attempt.
`;

/** Cancels the turn where it was canceled. */
const cancelSource = (turn: TurnTold, { endMs, nodes }: PlayedTurn): readonly [before: string, option: string] => {
  const canceled = turn.deadlineMs === undefined && turn.nodes.some(({ state }) => state === 'canceled');
  return canceled && nodes.length > 0
    ? [
        `    const stop = new AbortController();\n    scheduler.schedule(() => stop.abort(), ${endMs});\n`,
        ', { signal: stop.signal }',
      ]
    : ['', ''];
};

const headOf = ({ turnId }: TurnTold, failing: string): string =>
  [
    `// The turn ${turnId}, played again in virtual time: a frame is a millisecond. Made of its trace.`,
    'import { EMPTY, NEVER, concatWith, delay, filter, map, mergeMap, of, shareReplay, tap, type Observable } ' +
      "from 'rxjs';",
    "import { TestScheduler } from 'rxjs/testing';",
    `import { ${failing}createSpillway, plan, type RecoveryDecision, type Spillway, type ToolPolicy, type ` +
      `TurnEvent } from 'spillway';`,
    "import { runtimeOn, scriptedTool, type ScriptedStep } from 'spillway/testing';",
    "import { expect, it } from 'vitest';",
    '',
    '',
  ].join('\n');

const testSource = (turn: TurnTold, played: PlayedTurn): string => {
  const [stop, signal] = cancelSource(turn, played);
  return `it(${source(`turn ${turn.turnId}: ${turn.status}`)}, () => {
  const scheduler = new TestScheduler((actual, wanted) => expect(actual).toStrictEqual(wanted));
  scheduler.run(({ expectObservable }) => {
${stop}    const turn$ = play(scheduler).turn(nodes${signal}).pipe(shareReplay());
    for (const [row, marbles] of expected) expectObservable(rowOf(turn$, row)).toBe(marbles);
  });
});
`;
};

/**
 * A turn as a test of its own: a file for vitest that plays it again under `TestScheduler`, with tools that do what the
 * trace says they did, and expects every start, end and state at its frame. Decisions are those of the trace: chance is
 * told, not drawn again, and breakers refuse where they refused. What a turn shared with others cannot be played, and
 * is refused with the reason.
 *
 * @param model the trace
 * @param turn one of its turns
 *
 * @example
 * const model = emptyTrace();
 * for (const turn of model.turns.values()) log.push(marbleTest(model, turn));
 */
export function marbleTest(model: TraceModel, turn: TurnTold): MarbleTest {
  const refused = objectionToPlay(model, turn);
  if (refused !== undefined) return { refused };
  const played = playedTurn(model, turn);
  const failing = played.nodes.some(({ tries }) => tries.some(({ does }) => does === 'fail'))
    ? 'ToolExecutionError, '
    : '';
  const options = {
    timeoutMs: Math.round(turn.timeoutMs),
    onDeadline: turn.onDeadline,
    concurrency: played.concurrency,
  };
  return {
    code: `${headOf(turn, failing)}
${LEGEND}const expected: ReadonlyArray<readonly [row: string, marbles: string]> = [
${rowsSource(turn, played)}];

// What each try of a node did. A refused one met a breaker that was open.
type Try = ScriptedStep & { readonly heldMs?: number; readonly refused?: true };
const tries: Readonly<Record<string, readonly Try[]>> = {
${triesSource(played, turn.status !== 'failed')}};

// What was decided about each failure of a node, in order. Leave it out, and the layer decides by its policies.
const decisions: Readonly<Record<string, ReadonlyArray<RecoveryDecision & { readonly afterMs?: number }>>> = {
${decisionsSource(played)}};

const tools: ReadonlyArray<{ readonly name: string; readonly policy: ToolPolicy }> = [
${toolsSource(model, turn, played)}];

const nodes = plan.from(
  [
${planSource(played)}  ],
  ${source(options)},
);

${PLAYER}
${testSource(turn, played)}`,
  };
}
