import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { entries, root } from './consumer.ts';

const text = readFileSync(join(root, 'src/llms.txt'), 'utf8');
/** Each program of the page, and what the page says that it prints. */
const programs = [...text.matchAll(/^```ts\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm)].map((match) => {
  const [, code = '', printed = ''] = match;
  return {
    code,
    printed,
    heading: text
      .slice(0, match.index)
      .match(/^## .*$/gm)
      ?.at(-1)
      ?.slice(3),
  };
});

const folder = mkdtempSync(join(tmpdir(), 'spillway-llms-'));
beforeAll(() => {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  programs.forEach(({ code }, place) => writeFileSync(join(folder, `${place}.ts`), code));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('llms.txt', () => {
  it('takes at most 30 kB', () => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(30_000);
  });

  it('names every entry, and leaves nothing to be filled in', () => {
    expect(entries.filter((entry) => !text.includes(`\n- \`${entry}\`: `))).toEqual([]);
    expect(text).not.toContain('<!--');
  });

  it('shows programs only of which it says what they print', () => {
    expect(programs.length).toBe([...text.matchAll(/^```ts$/gm)].length);
    expect(programs.length).toBeGreaterThanOrEqual(8);
  });

  it('has programs that compile in a strict program', () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as {
      compilerOptions: { paths: Record<string, string[]> };
    };
    const paths = Object.fromEntries(
      Object.entries(compilerOptions.paths).map(([from, to]) => [from, to.map((path) => join(root, path))]),
    );
    const own = { rootDir: null, noUnusedLocals: false, isolatedDeclarations: false, declaration: false };
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions: { ...own, paths }, include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
    const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', folder];
    expect(spawnSync(process.execPath, tsc, { cwd: folder, encoding: 'utf8' }).stdout).toBe('');
  });

  it.each(programs.map((program, place) => ({ ...program, place })))(
    'has a program that prints what it says: $heading',
    async ({ place, printed }) => {
      const sources = pathToFileURL(join(root, 'test/examples/sources.ts')).href;
      const args = ['--disable-warning=ExperimentalWarning', '--import', sources, join(folder, `${place}.ts`)];
      const env = { ...process.env, NO_COLOR: '1' };
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
        cwd: root,
        env,
        timeout: 100_000,
      });
      expect([stdout, stderr]).toEqual([printed, '']);
    },
  );
});
