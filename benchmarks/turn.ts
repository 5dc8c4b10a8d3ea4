import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, type PlanNode } from '../src/index.ts';
const echo = tool({ name: 'echo', execute: (input: unknown) => input });
const later = tool({ name: 'later', execute: async (input: unknown) => input });
const s = createSpillway({ tools: [echo, later] });
const shapes: Record<string, (n: number, t: string) => PlanNode[]> = {
  chain: (n, t) => Array.from({ length: n }, (_, i) => ({ id: `n${i}`, tool: t, input: i, ...(i === 0 ? {} : { needs: [`n${i - 1}`] }) })),
  fan: (n, t) => Array.from({ length: n }, (_, i) => ({ id: `n${i}`, tool: t, input: i, ...(i === 0 ? {} : { needs: ['n0'] }) })),
  fanin: (n, t) => Array.from({ length: n }, (_, i) => ({ id: `n${i}`, tool: t, input: i, ...(i < n - 1 ? {} : { needs: Array.from({ length: n - 1 }, (_, j) => `n${j}`) }) })),
};
for (const t of ['echo', 'later']) for (const [name, make] of Object.entries(shapes)) {
  for (const n of [1000, 1000, 10_000, 100_000]) {
    const p = plan.from(make(n, t));
    const runs = n === 100_000 ? 2 : 5;
    const times: number[] = [];
    for (let r = 0; r < runs; r++) { const a = performance.now(); const e = await lastValueFrom(s.turn(p)); times.push(performance.now() - a); if (e.source !== 'turn' || e.type !== 'settled' || e.result.status !== 'completed') throw new Error(JSON.stringify(e).slice(0, 300)); }
    times.sort((x, y) => x - y);
    console.log(t, name, n, (times[0]! / n * 1000).toFixed(2), (times[runs >> 1]! / n * 1000).toFixed(2), 'us/node');
  }
}
