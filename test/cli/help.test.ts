import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/cli/command-names.ts';
import { COMMANDS, HELP, helpOf, optionsOf, whoHas } from '../../src/cli/commands.ts';
import { VERSION } from '../../src/contract/version.ts';
import { ROOT, STACK_TRACE, spillway } from './support.ts';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };

describe('R-2.9 help', () => {
  it('R-2.9 one help names every command and every option', () => {
    for (const command of COMMANDS) {
      expect(HELP).toContain(`spillway ${command.name}`);
      for (const { name } of optionsOf(command)) expect(HELP).toContain(`--${name}`);
    }
    expect(HELP.split('\n').filter((line) => line.length > 110)).toEqual([]);
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    'R-2.9 the help of %s describes each of its options, and none that it has not',
    (name, command) => {
      const described = [...command.help.matchAll(/^ {2}--([\w-]+)/gm)].map(([, option = '']) => option);
      expect(described.toSorted()).toEqual(
        Object.keys(command.options)
          .filter((option) => option !== 'version')
          .toSorted(),
      );
      for (const option of optionsOf(command)) {
        if (option.name === 'version') continue;
        expect(option.text).not.toBe('');
        expect(option.placeholder === undefined, option.name).toBe(command.options[option.name]?.type === 'boolean');
      }
      expect(command.help).toMatch(new RegExp(`^spillway ${name}`));
      expect(command.help.split('\n').filter((line) => line.length > 108)).toEqual([]);
    },
  );

  it('R-2.9 is asked for in each way that one expects', async () => {
    const [top, word, ofRun, ofShow, helpOfShow, number] = await Promise.all([
      spillway('--help'),
      spillway('help'),
      spillway('run', '--help'),
      spillway('show', '-h'),
      spillway('help', 'show'),
      spillway('-v'),
    ]);
    expect([top, word].map(({ code, stdout, stderr }) => ({ code, stdout, stderr }))).toEqual([
      { code: 0, stdout: HELP, stderr: '' },
      { code: 0, stdout: HELP, stderr: '' },
    ]);
    expect(ofRun.stdout).toMatch(/^spillway run PLAN\.yaml \[options\]\n/);
    expect(ofShow.stdout).toMatch(/^spillway show TRACE\.ndjson/);
    expect(helpOfShow.stdout).toBe(ofShow.stdout);
    expect([number.stdout, VERSION]).toEqual([`${version}\n`, version]);
    expect(() => helpOf(['shw'])).toThrow('there is no command "shw"; did you mean show?');
  });
});

describe('R-2.9 did you mean', () => {
  it('R-2.9 knows every command', async () => {
    const ask = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await spillway(...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).not.toMatch(STACK_TRACE);
      return stderr.split('\n')[0] ?? '';
    };
    expect(
      await Promise.all([ask('rn'), ask('chek'), ask('gatway'), ask('completion'), ask('version'), ask('serve')]),
    ).toEqual([
      'spillway: there is no command "rn"; did you mean run?',
      'spillway: there is no command "chek"; did you mean check?',
      'spillway: there is no command "gatway"; did you mean gateway?',
      'spillway: there is no command "completion"; did you mean completions?',
      'spillway: there is no command "version"; did you mean --version?',
      `spillway: there is no command "serve"; there is ${[...COMMAND_NAMES, '--version', '--help'].join(', ')}`,
    ]);
    expect(await ask('--json', 'show', 'x')).toBe(
      'spillway: the command comes first; write spillway show and then its options',
    );
  });

  it('R-2.9 knows every option, also of other commands', async () => {
    const { stderr } = await spillway('show', 'x', '--upstream', 'y');
    expect(stderr).toContain('there is no option --upstream; ');
    expect(stderr).toContain('; --upstream is an option of spillway gateway\n');
    expect((await spillway('tools', 'x', '--servr', 'y')).stderr).toContain(
      'there is no option --servr; did you mean --server?',
    );
    expect([whoHas('--json'), whoHas('--nothing')]).toEqual([
      '--json is an option of spillway run, check, tools, show, replay, simulate, attach, fleet, admin, approve',
      undefined,
    ]);
  });
});
