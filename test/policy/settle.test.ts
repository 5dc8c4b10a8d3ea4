import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JournalEntry } from '../../src/contract/settle/journal.ts';
import { turnStatus } from '../../src/policy/recovery/cascade.ts';
import { filled } from '../../src/policy/settle/filled.ts';
import { findingOf, foundOf } from '../../src/policy/settle/finding.ts';
import { at, stepsOf } from '../../src/policy/settle/place.ts';
import { leftBehindSentence, undoSteps } from '../../src/policy/settle/undo-order.ts';

describe('R-18.1 an answer of verify', () => {
  it('is done or not done only where it says exactly that', () => {
    fc.assert(
      fc.property(fc.anything(), (answer) => {
        const { finding } = findingOf(answer);
        const done = (answer as { done?: unknown } | null | undefined)?.done;
        const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer);
        const expected = isObject && done === true ? 'done' : isObject && done === false ? 'not_done' : 'unknown';
        expect(finding).toBe(expected);
      }),
    );
  });

  it('of several tools: one that is done decides, and all must say that none is', () => {
    const finding = fc.constantFrom('done' as const, 'not_done' as const, 'unknown' as const);
    fc.assert(
      fc.property(fc.array(finding), (all) => {
        // Nobody was asked: nothing is known.
        const isUnknown = all.includes('unknown') || all.length === 0;
        const expected = all.includes('done') ? 'done' : isUnknown ? 'unknown' : 'not_done';
        expect(foundOf(all.map((one) => ({ finding: one }))).finding).toBe(expected);
      }),
    );
  });
});

describe('R-18.3 places and templates', () => {
  it.each<[string, unknown, unknown[], boolean, boolean?]>([
    ['a', { a: 1 }, [1], false],
    ['a.b', { a: { b: null } }, [null], false],
    ['a.b', { a: {} }, [], false, true],
    ['a.b', {}, [], true],
    ['a[0].b', { a: [{ b: 2 }] }, [2], false],
    ['a[*].b', { a: [{ b: 2 }, {}, { b: 3 }] }, [2, 3], false],
    ['a[*].b', { a: [] }, [], false],
    ['a[*].b', { a: 'text' }, [], true],
    ['a["b c"]', { a: { 'b c': 4 } }, [4], false],
    ['a[2]', { a: [] }, [], false],
    ['__proto__', {}, [], false, true],
    ['constructor.name', {}, [], true],
  ])('%s of %j', (place, value, values, isOdd, isMissing = false) => {
    expect(at(value, stepsOf('path', place))).toEqual({ values, isOdd, isMissing });
  });

  it('a text is a place or refused by a RangeError, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          expect(stepsOf('path', text).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });

  it('a template without references is what it was, and a lone reference keeps its type', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = JSON.parse(JSON.stringify(value).replaceAll('$', '')) as unknown;
        expect(filled('input', plain, [])({})).toEqual(plain);
        if (value !== null) expect(filled('input', '${output}', ['output'])({ output: value })).toEqual(value);
      }),
    );
    expect(filled('input', 'id ${output.id}, $${x}', ['output'])({ output: { id: 7 } })).toBe('id 7, ${x}');
    expect(() => filled('input', '${output.id}', ['output'])({ output: {} })).toThrow(/has no value/);
  });
});

describe('R-18.5 what is undone', () => {
  const entryOf = (id: string, after: string[]): JournalEntry => ({
    id,
    toolName: id,
    callId: id,
    callKey: id,
    after,
    state: 'done',
  });

  it('comes after all that build on it, each once', () => {
    const graph = fc
      .array(fc.array(fc.nat()), { maxLength: 30 })
      .map((needs) =>
        needs.map((places, place) =>
          entryOf(`n${place}`, place === 0 ? [] : [...new Set(places.map((other) => `n${other % place}`))]),
        ),
      );
    fc.assert(
      fc.property(graph, (entries) => {
        const order = undoSteps(entries).map(({ entry }) => entry.id);
        expect(order.toSorted()).toEqual(entries.map(({ id }) => id).toSorted());
        for (const { entry, first } of undoSteps(entries))
          for (const before of first) {
            expect(before.after).toContain(entry.id);
            expect(order.indexOf(before.id)).toBeLessThan(order.indexOf(entry.id));
          }
      }),
    );
  });

  it('is missing for the turn, and what could not be undone escalates it, optional or not', () => {
    const node = (state: 'compensated' | 'compensation_failed', optional: boolean) => ({
      state,
      optional,
      covered: false,
    });
    expect(turnStatus([node('compensated', false)], 1)).toBe('escalated');
    expect(turnStatus([node('compensated', true)], 1)).toBe('partial');
    expect(turnStatus([node('compensation_failed', true)], 1)).toBe('escalated');
  });

  it('and stays has a sentence with who must act', () => {
    const left = { id: 'h', toolName: 'book_hotel', callKey: 'k', why: 'it is closed.', owner: 'the desk' };
    expect(leftBehindSentence(left, true, (name) => name)).toBe(
      'Book hotel was done, could not be undone, and stays: it is closed. The desk must look at it and undo it by hand.',
    );
    expect(leftBehindSentence(left, false, (name) => name)).toContain('may have been done, and may stay');
  });
});
