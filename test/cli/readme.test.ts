import { spawn } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, tool } from 'spillway';
import { serveAdmin, type AdminServer } from 'spillway/gateway/admin-server';
import { COMMAND_NAMES } from '../../src/cli/command-names.ts';
import { parseGateway } from '../../src/cli/arguments/gateway.ts';
import { ROOT, folder } from './support.ts';

const README = readFileSync(join(ROOT, 'src/cli/README.md'), 'utf8');
const TOKEN = 'a-token-of-our-own-0123456789';
const files = folder();
const layer = createSpillway({
  tools: [tool({ name: 'search', policy: { effects: 'read' }, execute: () => 'found' })],
});
let admin: AdminServer;

beforeAll(async () => {
  cpSync(join(import.meta.dirname, 'readme'), files.path, { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(files.path, 'node_modules'), 'junction');
  writeFileSync(
    join(files.path, 'spillway'),
    `#!/bin/sh\nexec ${JSON.stringify(process.execPath)} ${JSON.stringify(join(ROOT, 'src/cli/main.ts'))} "$@"\n`,
    { mode: 0o755 },
  );
  admin = await serveAdmin(layer, { token: TOKEN });
});
afterAll(async () => {
  await admin.close();
  await layer.close();
  files[Symbol.dispose]();
});

interface Example {
  readonly command: string;
  readonly printed: string;
}

/** Each `$ command` of the page, with the lines that follow it. */
const examples = [...README.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((text): Example => ({
      command: text.slice(0, text.indexOf('\n')),
      printed: text.slice(text.indexOf('\n') + 1),
    })),
);

/** What a shell prints for a line, in the folder of the page's files. */
const said = (command: string): Promise<string> =>
  new Promise((resolve) => {
    const { NO_COLOR: _no, FORCE_COLOR: _force, ...inherited } = process.env;
    const env = {
      ...inherited,
      PATH: `${files.path}:${inherited['PATH'] ?? ''}`,
      SPILLWAY_ADMIN_URL: admin.url,
      SPILLWAY_ADMIN_TOKEN: TOKEN,
    };
    const child = spawn('sh', ['-c', `{ ${command}; } 2>&1`], {
      cwd: files.path,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    child.once('close', () => resolve(text));
  });

describe('R-2.9 the page of the command', () => {
  it('R-2.9 has a section for each command, and none for another', () => {
    expect([...README.matchAll(/^## (.*)$/gm)].map(([, name]) => name)).toEqual([...COMMAND_NAMES]);
  });

  it('R-2.9 shows each command at work', () => {
    const shown = [
      ...examples.map(({ command }) => command),
      ...[...README.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, line = '']) => line),
    ];
    for (const name of COMMAND_NAMES)
      if (name !== 'help')
        expect(
          shown.some((line) => line.startsWith(`spillway ${name} `)),
          name,
        ).toBe(true);
    const [, gateway = ''] = /^spillway gateway (.*)$/m.exec(README) ?? [];
    expect(parseGateway(gateway.split(' '))).toMatchObject({
      upstream: 'https://api.anthropic.com',
      toolPaths: ['plan.yaml'],
      port: 8787,
    });
  });

  // One after the other: some go on from those before them.
  it('R-2.9 prints what its examples print', async () => {
    for (const { command, printed } of examples)
      expect(`$ ${command}\n${await said(command)}`).toBe(`$ ${command}\n${printed}`);
    expect(examples.length).toBeGreaterThan(12);
  });
});
