import { simulate } from './simulate.ts';
const from = Number(process.argv[2] ?? 1), count = Number(process.argv[3] ?? 1);
const t = performance.now();
let bad = 0;
const seen = new Map<string, number>();
for (let s = from; s < from + count; s++) {
  const o = await simulate(s, count === 1 ? (l) => console.log(l) : undefined);
  for (const x of o.seen) seen.set(x, (seen.get(x) ?? 0) + 1);
  if (o.violations.length) { bad++; if (bad < 12) console.log(s, o.violations.slice(0, 2).map((v) => `${v.invariant} @${v.atMs} ${v.message}`).join(' | ')); }
}
console.log(count / (performance.now() - t) * 1000, 'seeds/s', bad, 'bad'); console.log(Object.fromEntries(seen));
