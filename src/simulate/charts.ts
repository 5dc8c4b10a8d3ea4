import type { Series } from './storm/series.ts';
import type { StormReport } from './storm/simulate.ts';

/** A text as markup: nothing of it is a tag. */
export const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    // Characters that XML has no place for, and those that turn the line's direction.
    .replaceAll(/[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069]/gu, ' ');

const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [380, 96, 52, 26, 30] as const;
const PLOT = { width: WIDTH - LEFT - 14, height: HEIGHT } as const;

interface Line {
  readonly of: 'offered' | 'attempts' | 'succeeded' | 'p95' | 'retryShare';
  readonly label: string;
  readonly style: string;
}
interface Chart {
  readonly title: string;
  readonly lines: readonly Line[];
}

const CHARTS: readonly Chart[] = [
  {
    title: 'calls and attempts a second',
    lines: [
      { of: 'attempts', label: 'attempts', style: 'stroke:#b3261e' },
      { of: 'offered', label: 'calls', style: 'stroke:#1f4e9c' },
      { of: 'succeeded', label: 'succeeded', style: 'stroke:#1b6e3c;stroke-dasharray:4 2' },
    ],
  },
  { title: '95th percentile, ms', lines: [{ of: 'p95', label: 'p95', style: 'stroke:#1f4e9c' }] },
  { title: 'share of retries', lines: [{ of: 'retryShare', label: 'retries', style: 'stroke:#b3261e' }] },
];

const fixed = (value: number): string => String(Number(value.toFixed(2)));

const highest = (chart: Chart, all: readonly Series[]): number =>
  Math.max(1e-9, ...all.flatMap((series) => chart.lines.flatMap(({ of }) => series[of].map(Number))));

const untilS = ({ atS, bucketMs }: Series): number => (atS.at(-1) ?? 0) + bucketMs / 1_000;

interface Scale {
  readonly endS: number;
  readonly top: number;
}

const polyline = ({ of, style }: Line, series: Series, { endS, top }: Scale): string => {
  const points = series.atS.map(
    (atS, index) =>
      `${fixed((atS / endS) * PLOT.width)},${fixed(PLOT.height - ((series[of][index] ?? 0) / top) * PLOT.height)}`,
  );
  const data = `data-series="${of}" data-values="${series[of].join(' ')}"`;
  return `<polyline ${data} style="fill:none;stroke-width:1.4;${style}" points="${points.join(' ')}"/>`;
};

const bands = ({ bands: all }: Series, { endS }: Scale): string =>
  all
    .map(({ toolName, state, fromS, toS }) => {
      const [x, width] = [(fromS / endS) * PLOT.width, ((toS - fromS) / endS) * PLOT.width];
      const colour = state === 'open' ? '#f2b8b5' : '#fbe3a1';
      const data = `data-band="${escaped(toolName)} ${state} ${fromS} ${toS}"`;
      const place = `x="${fixed(x)}" y="0" width="${fixed(Math.max(0.5, width))}" height="${PLOT.height}"`;
      const title = `<title>${escaped(toolName)} ${state} from ${fromS} s to ${toS} s</title>`;
      return `<rect ${data} ${place} fill="${colour}">${title}</rect>`;
    })
    .join('');

const axis = ({ endS, top }: Scale): string =>
  `<path d="M0,0V${PLOT.height}H${PLOT.width}" style="fill:none;stroke:#555"/>` +
  `<text x="-6" y="8" text-anchor="end">${fixed(top)}</text>` +
  `<text x="-6" y="${PLOT.height}" text-anchor="end">0</text>` +
  `<text x="${PLOT.width}" y="${PLOT.height + 13}" text-anchor="end">${fixed(endS)} s</text>`;

const panel = (chart: Chart, series: Series, scale: Scale, place: readonly [number, number], name: string): string => {
  const [column, row] = place;
  const x = column * WIDTH + LEFT;
  const y = TOP + row * (HEIGHT + GAP) + 16;
  const title = `<text x="0" y="-5">${escaped(`${name}: ${chart.title}`)}</text>`;
  const lines = chart.lines.map((line) => polyline(line, series, scale)).join('');
  return `<g transform="translate(${x},${y})">${title}${bands(series, scale)}${axis(scale)}${lines}</g>`;
};

const legend = (): string => {
  const lines = CHARTS[0]?.lines ?? [];
  const marks = lines.map(
    ({ label, style }, index) =>
      `<path d="M${index * 92},0h18" style="fill:none;stroke-width:2;${style}"/>` +
      `<text x="${index * 92 + 22}" y="4">${label}</text>`,
  );
  const state = (at: number, colour: string, label: string): string =>
    `<rect x="${at}" y="-6" width="14" height="10" fill="${colour}"/><text x="${at + 18}" y="4">${label}</text>`;
  return `${marks.join('')}${state(276, '#f2b8b5', 'breaker open')}${state(372, '#fbe3a1', 'half open')}`;
};

/**
 * The charts of a report as one SVG: a column a policy, the first seed of each. Every number in it is one of the
 * report's `series`.
 */
export function chartsSvg(report: StormReport): string {
  const all = report.policies.map(({ series }) => series);
  const endS = Math.max(1e-9, ...all.map(untilS));
  const panels = CHARTS.flatMap((chart, row) => {
    const scale = { endS, top: highest(chart, all) };
    return report.policies.map(({ name, series }, column) => panel(chart, series, scale, [column, row], name));
  });
  const width = Math.max(1, report.policies.length) * WIDTH;
  const height = TOP + CHARTS.length * (HEIGHT + GAP) + 22;
  const title = `${report.scenario}, seed ${report.seeds.first}`;
  const size = `viewBox="0 0 ${Math.max(width, 480)} ${height}"`;
  const about = `role="img" aria-label="${escaped(title)}" ${size} font-family="sans-serif" font-size="10"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${about}><rect width="100%" height="100%" fill="#fff"/>` +
    `<text x="8" y="15" font-size="12" font-weight="bold">${escaped(title)}</text>${panels.join('')}` +
    `<g transform="translate(12,${height - 10})">${legend()}</g></svg>\n`
  );
}

const cellOf = (text: string, of: 'col' | 'row' | undefined): string =>
  of === undefined ? `<td>${escaped(text)}</td>` : `<th scope="${of}">${escaped(text)}</th>`;

const headRow = (cells: readonly string[]): string => `<tr>${cells.map((cell) => cellOf(cell, 'col')).join('')}</tr>`;

const bodyRow = (cells: readonly string[]): string =>
  `<tr>${cells.map((cell, index) => cellOf(cell, index === 0 ? 'row' : undefined)).join('')}</tr>`;

const STYLE =
  'body{font:15px/1.45 sans-serif;margin:2em;color:#111;background:#fff}table{border-collapse:collapse}' +
  'th,td{padding:.3em .8em;border-bottom:1px solid #bbb;text-align:left}svg{max-width:100%;height:auto}';

/** A page of a report: its table, what was expected, and its charts. It loads nothing and runs nothing. */
export function stormPage(report: StormReport, table: readonly string[][], expectations: readonly string[]): string {
  const [head = [], ...rows] = table;
  const items = expectations.map((line) => `<li>${escaped(line)}</li>`).join('');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(report.scenario)}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>${STYLE}</style></head>
<body><main><h1>${escaped(report.scenario)}</h1>${report.about === undefined ? '' : `<p>${escaped(report.about)}</p>`}
<p>${report.seeds.count} seeds from ${report.seeds.first}, ${report.engine} engine. The charts show the first seed.</p>
<table><thead>${headRow(head)}</thead><tbody>${rows.map(bodyRow).join('')}</tbody></table>
${items === '' ? '' : `<ul>${items}</ul>`}
${chartsSvg(report)}</main></body></html>
`;
}
