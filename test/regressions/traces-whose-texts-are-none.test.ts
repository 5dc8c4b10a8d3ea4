// Was: a foreign trace with an object that cannot become a text, `{ "toString": 0 }`, as an event’s source, or in a
// remark or a budget’s note, ended the command and the inspector with a TypeError. Now: such an object is no text.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addEvent, emptyTrace } from 'spillway/inspect';
import { readNdjson } from 'spillway/sinks/ndjson';
import type { TraceEvent } from 'spillway';

const NONE = { toString: 0 };
const frame = { seq: 0, atMs: 1, source: 'call', callId: 'c', toolName: 't' };

describe('SEE-1 what is no text where one is expected', () => {
  it.each([
    { ...frame, type: 'escalated', message: NONE, choices: [NONE] },
    { ...frame, type: 'approval', step: NONE, by: NONE, message: NONE },
    { ...frame, type: 'hook', hook: NONE, outcome: NONE, message: NONE },
    { ...frame, type: 'verified', finding: NONE, message: NONE },
    { ...frame, type: 'shadow', would: NONE, message: NONE },
    { ...frame, source: 'layer', type: 'budget', per: NONE, step: NONE, left: NONE, limit: NONE, unit: NONE },
  ])('SEE-1 $type is told without it', (event) => {
    const model = emptyTrace();
    addEvent(model, { ...frame, type: 'call_started' } as unknown as TraceEvent);
    addEvent(model, event as unknown as TraceEvent);
    const [note] = model.calls.get('c')?.notes ?? [];
    expect(note?.text).toBeTypeOf('string');
  });

  it('SEE-9 a line whose source is none is left out of what is read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-none-'));
    const path = join(folder, 'trace.ndjson');
    const lines = [
      { ...frame, type: 'call_started' },
      { ...frame, seq: 1, type: 'call_started', source: NONE },
    ];
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const read = await readNdjson(path);
    rmSync(folder, { recursive: true });
    expect(read.events).toHaveLength(1);
    expect(read.leftOut).toMatchObject([{ line: 2 }]);
  });
});
