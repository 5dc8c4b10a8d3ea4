import { createSpillway, tool } from '../src/index.ts';
import { memoryStore } from '../src/stores/memory.ts';
const layer = createSpillway({ tools: [tool({ name: 't', execute: async () => 1 })], store: memoryStore() });
const N = Number(process.argv[2] ?? 60000);
const go = async (n: number, k: string) => { for (let i = 0; i < n; i++) await layer.execute({ toolName: 't', input: { i }, idempotencyKey: `${k}${i}` } as never); };
await go(5000, 'w');
for (let r = 0; r < 3; r++) { const t = process.cpuUsage(); await go(N / 3, `r${r}-`); const u = process.cpuUsage(t); console.log(((u.user + u.system) / (N / 3)).toFixed(2), 'us cpu'); }
process.exit(0);
