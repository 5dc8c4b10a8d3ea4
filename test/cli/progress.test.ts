import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { UNICODE } from '../../src/inspect/share/glyphs.ts';
import { liveProgress } from '../../src/cli/show/progress.ts';
import type { Output, Style } from '../../src/cli/show/terminal.ts';
import type { TurnEvent } from '../../src/contract/event.ts';
import { handClock } from '../support.ts';

const STYLE: Style = { columns: 40, glyphs: UNICODE, paint: (_, text) => text };

/** A terminal of some rows: the lines on it after all that was written. */
const terminal = (
  rows: number,
): { readonly output: Output; readonly lines: () => string[]; readonly written: () => string } => {
  let written = '';
  const output = Object.assign(
    new Writable({
      write: (chunk: Buffer, _, done) => {
        written += chunk.toString();
        done();
      },
    }),
    { isTTY: true, columns: 40, rows },
  );
  const lines = (): string[] => {
    let screen: string[] = [];
    // What is erased goes away with the lines above the cursor; synchronised updates mark only when to draw.
    for (const [, up, text] of written
      .replaceAll(/\u001b\[\?2026[hl]/g, '')
      .matchAll(/(?:\u001b\[(\d+)A\r\u001b\[J)|([^\u001b]+)/g)) {
      if (up !== undefined) screen = screen.slice(0, screen.length - Number(up));
      else screen.push(...(text ?? '').split('\n').slice(0, -1));
    }
    return screen;
  };
  return { output, lines, written: () => written };
};

const started = (atMs: number, ...ids: readonly string[]): TurnEvent => ({
  seq: 1,
  atMs,
  source: 'turn',
  turnId: 't',
  type: 'turn_started',
  timeoutMs: 5_000,
  nodes: ids.map((id) => ({ id, toolName: id, needs: [] })),
});
const attempted = (atMs: number, id: string): TurnEvent => ({
  seq: 2,
  atMs,
  source: 'call',
  callId: id,
  nodeId: id,
  toolName: id,
  type: 'attempt_started',
  attempt: 1,
});
const reported = (atMs: number, id: string, message: string): TurnEvent => ({
  seq: 3,
  atMs,
  source: 'call',
  callId: id,
  nodeId: id,
  toolName: id,
  type: 'progress',
  attempt: 1,
  report: { message },
});

describe('live progress', () => {
  it('is drawn in place, with time that passes, and leaves nothing behind', () => {
    const clock = handClock();
    const { output, lines } = terminal(24);
    const progress = liveProgress(output, STYLE, clock.runtime);
    progress.note('starting s');
    progress.event(started(clock.runtime.now(), 'a', 'b'));
    progress.event(attempted(clock.runtime.now(), 'a'));
    clock.pass(80);
    expect(lines()).toEqual(['starting s', '80 ms of 5.00 s, 0 of 2 done', '^ a  a 80 ms', '  b  waiting']);
    clock.pass(80);
    expect(lines()).toEqual(['starting s', '160 ms of 5.00 s, 0 of 2 done', '^ a  a 160 ms', '  b  waiting']);
    progress.end();
    expect(lines()).toEqual(['starting s']);
    expect(clock.runtime.timers).toBe(0);
  });

  it('never takes more lines than the terminal has, and shows what runs first', () => {
    const clock = handClock();
    const { output, lines } = terminal(8);
    const progress = liveProgress(output, STYLE, clock.runtime);
    progress.event(started(clock.runtime.now(), ...Array.from({ length: 100 }, (_, index) => `n${index}`)));
    progress.event(attempted(clock.runtime.now(), 'n70'));
    clock.pass(80);
    expect(lines().length).toBeLessThanOrEqual(7);
    expect(lines()[1]).toMatch(/^\^ n70 /);
    progress.end();
  });

  it('shows what a server says as one harmless line that fits', () => {
    const clock = handClock();
    const { output, lines, written } = terminal(24);
    const progress = liveProgress(output, STYLE, clock.runtime);
    progress.event(started(clock.runtime.now(), 'a'));
    progress.event(attempted(clock.runtime.now(), 'a'));
    progress.event(reported(clock.runtime.now(), 'a', '\u001b[2J50 %\nroot logged in, and more and more and more'));
    clock.pass(80);
    expect(written()).not.toContain('\u001b[2J');
    expect(lines()).toHaveLength(2);
    expect(lines()[1]).toMatch(/^\^ a {2}a 80 ms {2}50 % root logged in.*…$/);
    expect((lines()[1] ?? '').length).toBeLessThanOrEqual(40);
    progress.end();
  });
});
