import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { virtualRuntime } from 'spillway/testing';
import { layerOf, reset, stepped } from './kit.ts';
import { event, fresh, numbers, seqsOf } from './ndjson-kit.ts';

describe('R-7.1 a file system that fails', () => {
  it('R-7.1 a folder that is gone loses nothing while the file is open, is told once, and is found again', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const errors: string[] = [];
    const onError = (error: Error): never => {
      errors.push((error as NodeJS.ErrnoException).code ?? '');
      throw new Error('a listener that throws');
    };
    const file = await ndjsonSink(path, { runtime, retryMs: 1_000, onError });
    file.next(event(1));
    await file.flush();
    renameSync(folder, `${folder}-gone`);
    expect((await file.reopen()).error).toMatchObject({ code: 'ENOENT' });
    for (const seq of [2, 3, 4]) {
      await runtime.advance(1_000);
      file.next(event(seq));
      await file.flush();
    }
    expect(errors).toEqual(['ENOENT']);
    mkdirSync(folder);
    file.next(event(5));
    await file.flush();
    await runtime.advance(1_000);
    file.next(event(6));
    await file.flush();
    renameSync(folder, `${folder}-gone-again`);
    await file.reopen();
    expect(errors).toEqual(['ENOENT', 'ENOENT']);
    expect(await file.close()).toMatchObject({ written: 6, dropped: 0 });
    expect([
      await seqsOf([join(`${folder}-gone`, 'trace.ndjson')]),
      await seqsOf([join(`${folder}-gone-again`, 'trace.ndjson')]),
    ]).toEqual([[1, 2, 3, 4, 5], [6]]);
  });

  it('R-7.1 a rotation that cannot be is told once, and the file grows', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const errors: Error[] = [];
    const file = await ndjsonSink(path, { runtime, maxFileBytes: 4_096, onError: (error) => errors.push(error) });
    file.next(event(1, 'x'.repeat(3_000)));
    await file.flush();
    renameSync(folder, `${folder}-gone`);
    for (const seq of numbers(2, 9)) {
      await runtime.advance(600);
      file.next(event(seq, 'x'.repeat(1_000)));
      await file.flush();
    }
    expect(errors).toHaveLength(1);
    expect(await file.close()).toMatchObject({ written: 9, dropped: 0, error: { code: 'ENOENT' } });
    expect(await seqsOf([join(`${folder}-gone`, 'trace.ndjson')])).toEqual(numbers(1, 9));
  });

  it('R-7.1 a full disk is told once, and no call is harmed, whatever the listener does', async () => {
    let told = 0;
    const file = await ndjsonSink('/dev/full', {
      retryMs: 1,
      onError: async () => {
        told++;
        throw new Error('a listener that rejects');
      },
    });
    const layer = layerOf([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    layer.spillway.trace$.subscribe(file);
    for (let call = 0; call < 3; call++) {
      expect((await layer.run('shaky')).status).toBe('success');
      await file.flush();
    }
    const { written, dropped } = await file.close();
    expect([told, written, dropped]).toEqual([1, 0, layer.events.length]);
    expect(layer.spillway.droppedEvents).toBe(0);
  });

  it('R-2.9 refuses options that cannot be', async () => {
    const { path } = fresh();
    await expect(ndjsonSink(path, { maxFileBytes: 100 })).rejects.toThrow('maxFileBytes must be an integer from 4096');
    await expect(ndjsonSink(path, { maxFileAgeMs: 0 })).rejects.toThrow('maxFileAgeMs must be a duration above 0');
    await expect(ndjsonSink(path, { maxFolderBytes: 100_000 })).rejects.toThrow(
      'maxFolderBytes must be at least twice maxFileBytes',
    );
    await expect(ndjsonSink(path, { maxFileBytes: 60_000, maxFolderBytes: 100_000 })).rejects.toThrow(
      'maxFolderBytes must be at least twice maxFileBytes',
    );
    await expect(ndjsonSink(path, { onError: 'log' as never })).rejects.toThrow(
      'onError must be a function, not string',
    );
  });
});
