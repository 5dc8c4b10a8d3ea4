import type { TurnTold } from '../model.ts';
import { FONT, SVG, escaped } from './marbles-svg.ts';
import { placedNodes } from './graph-layout.ts';

const WIDE = 200;
const HIGH = 46;
const LABEL_MAX = 16;

const COLOURS: Readonly<Record<string, string>> = {
  succeeded: '#1a7f37',
  defaulted: '#1a7f37',
  failed: '#cf222e',
  timed_out: '#bc4c00',
  canceled: '#bc4c00',
};

const fit = (text: string): string =>
  text.length > LABEL_MAX ? `${text.slice(0, LABEL_MAX - 1).toWellFormed()}…` : text;

/** The plan of a turn as it was, in SVG: its real edges, and in bold the path that decided how long it took. */
export function graphSvg(turn: TurnTold): string {
  const placed = placedNodes(turn);
  const byId = new Map(placed.map((one) => [one.node.nodeId, one]));
  const width = (placed.reduce((most, { column }) => Math.max(most, column), 0) + 1) * WIDE;
  const height = (placed.reduce((most, { row }) => Math.max(most, row), 0) + 1) * HIGH;
  const edges = placed.flatMap(({ node, column, row, critical }) =>
    node.needs.flatMap((need) => {
      const from = byId.get(need);
      if (from === undefined) return [];
      const [x, y] = [from.column * WIDE + 150, from.row * HIGH + 22];
      const [a, b] = [column * WIDE + 8, row * HIGH + 22];
      const stroke = critical && from.critical ? 'stroke="#0969da" stroke-width="3"' : 'stroke="#57606a"';
      return [`<path d="M${x} ${y}C${x + 30} ${y} ${a - 30} ${b} ${a} ${b}" fill="none" ${stroke}/>`];
    }),
  );
  const boxes = placed.map(({ node: { nodeId, state = 'running' }, column, row, critical }) => {
    const [x, y] = [column * WIDE + 8, row * HIGH + 8];
    const stroke = `stroke="${COLOURS[state] ?? '#57606a'}" stroke-width="${critical ? 3 : 1}"`;
    return (
      `<g><title>${escaped(`${nodeId}: ${state}`)}</title><rect x="${x}" y="${y}" width="142" height="28" ` +
      `rx="5" fill="#ffffff" ${stroke}/><text x="${x + 8}" y="${y + 19}" fill="#1f2328">` +
      `${escaped(fit(nodeId))}</text></g>`
    );
  });
  const title = escaped(`The graph of turn ${turn.turnId}`);
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const back = '<rect width="100%" height="100%" fill="#ffffff"/>';
  return `${SVG} ${size} ${FONT} role="img"><title>${title}</title>${back}${edges.join('')}${boxes.join('')}</svg>\n`;
}
