// A dashboard of the trace in ten lines: what each tool did, told again whenever something has changed.
import { auditTime, last, scan } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';

let asked = 0;
const flaky = tool({
  name: 'flaky',
  policy: { effects: 'read', retry: { initialDelayMs: 20 } },
  execute: () => {
    asked += 1;
    if (asked % 3 !== 0) throw Object.assign(new Error('busy'), { status: 503 });
    return asked;
  },
});
const steady = tool({ name: 'steady', policy: { effects: 'read' }, execute: () => 'fine' });
const spillway = createSpillway({ tools: [flaky, steady] });

// The ten lines.
const COUNTED = ['settled', 'attempt_started', 'attempt_failed', 'attempt_canceled'];
type Rows = Readonly<Record<string, Readonly<Record<string, number>>>>;
const rows$ = spillway.trace$.pipe(
  scan((rows: Rows, event): Rows => {
    if (event.source !== 'call' || !COUNTED.includes(event.type)) return rows;
    const row = rows[event.toolName];
    return { ...rows, [event.toolName]: { ...row, [event.type]: (row?.[event.type] ?? 0) + 1 } };
  }, {}),
);
rows$.pipe(auditTime(100)).subscribe((rows) => process.stdout.isTTY && console.table(rows));

rows$.pipe(last()).subscribe((rows) => console.table(rows, COUNTED));
const turn = plan()
  .call('a', flaky, {})
  .call('b', steady, {})
  .call('c', flaky, {}, { needs: ['a'] });
spillway.turn(turn).subscribe({ complete: () => void spillway.close() });
