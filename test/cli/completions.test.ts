import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, optionsOf } from '../../src/cli/commands.ts';
import { completionScript } from '../../src/cli/completions.ts';
import { parseCompletions, SHELLS, type Shell } from '../../src/cli/arguments/completions.ts';
import { UsageError } from '../../src/cli/arguments/usage.ts';
import { ROOT, folder, spillway } from './support.ts';

const files = folder();
const scripts: Record<Shell, string> = { bash: '', zsh: '', fish: '' };
beforeAll(() => {
  for (const shell of SHELLS) scripts[shell] = files.write(`spillway.${shell}`, completionScript(shell));
});
afterAll(() => files[Symbol.dispose]());

const capture = join(import.meta.dirname, 'capture.zsh');
const isThere = (shell: Shell): boolean => spawnSync(shell, ['-c', 'exit 0']).status === 0;

const run = (shell: Shell, args: readonly string[]): string[] => {
  const { stdout, stderr, status } = spawnSync(shell, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, HOME: files.path, TERM: 'xterm' },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .toSorted();
};

/** What a real shell offers when Tab is pressed at the end of a line. */
const OFFERED: Readonly<Record<Shell, (line: string) => string[]>> = {
  bash: (line) =>
    run('bash', [
      '-c',
      'source "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _spillway; printf "%s\\n" "${COMPREPLY[@]}"',
      '-',
      scripts.bash,
      line,
    ]),
  zsh: (line) => run('zsh', ['-f', capture, scripts.zsh, line]),
  fish: (line) =>
    run('fish', ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', scripts.fish, line]).map(
      (offer) => offer.split('\t')[0] ?? '',
    ),
};

const optionsFor = (name: string): string[] =>
  COMMANDS.filter((command) => command.name === name)
    .flatMap((command) =>
      optionsOf(command)
        .filter((option) => option.name !== 'version')
        .map((option) => `--${option.name}`),
    )
    .toSorted();

describe('R-2.9 completions', () => {
  it.each(SHELLS)('R-2.9 of %s name every command and every option', (shell) => {
    const script = completionScript(shell);
    for (const command of COMMANDS) {
      expect(script).toContain(command.name);
      for (const { name } of optionsOf(command))
        expect(script).toMatch(new RegExp(shell === 'fish' ? ` -l ${name}\\b` : `--${name}\\b`));
    }
  });

  for (const shell of SHELLS) {
    describe.skipIf(!isThere(shell))(`R-2.9 in a real ${shell} (skipped: only where it is not installed)`, () => {
      it('R-2.9 is a script that it can read', () => {
        expect(run(shell, ['-n', scripts[shell]])).toEqual([]);
      });

      it('R-2.9 offers the commands', () => {
        expect(OFFERED[shell]('spillway ').filter((word) => !word.startsWith('-'))).toEqual(
          COMMANDS.map(({ name }) => name as string).toSorted(),
        );
        expect(OFFERED[shell]('spillway ch')).toEqual(['check']);
      });

      it.each(COMMANDS.filter(({ options }) => Object.keys(options).length > 0).map(({ name }) => name))(
        'R-2.9 offers the options of %s',
        (name) => {
          expect(OFFERED[shell](`spillway ${name} --`)).toEqual(optionsFor(name));
        },
      );

      it('R-2.9 offers what a first word can be', () => {
        expect(OFFERED[shell]('spillway admin f')).toEqual(['flush', 'force-open']);
        expect(OFFERED[shell]('spillway completions ')).toEqual(['bash', 'fish', 'zsh']);
        expect(OFFERED[shell]('spillway help sh')).toEqual(['show']);
        expect(OFFERED[shell]('spillway gateway ')).toEqual(['anthropic']);
      });

      it('R-2.9 offers files where files are meant', () => {
        expect(OFFERED[shell]('spillway run tsconf').map((word) => word.trim())).toEqual(['tsconfig.json']);
        expect(OFFERED[shell]('spillway run x --trace tsconf').map((word) => word.trim())).toEqual(['tsconfig.json']);
      });
    });
  }

  it('R-2.9 refuses shells that it does not know', async () => {
    expect(parseCompletions(['fish'])).toBe('fish');
    expect(() => parseCompletions([])).toThrow('the shell is missing; there is bash, zsh, fish');
    expect(() => parseCompletions(['bsh'])).toThrow('there are no completions for "bsh"; did you mean bash?');
    expect(() => parseCompletions(['bash', 'zsh'])).toThrow(UsageError);
    expect(await spillway('completions', 'bash')).toEqual({
      code: 0,
      signal: null,
      stdout: completionScript('bash'),
      stderr: '',
    });
  });
});
