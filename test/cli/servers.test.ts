import { delimiter, join, resolve, sep } from 'node:path';
import { describe, expect, it } from 'vitest';
import { launchOf } from '../../src/cli/servers.ts';

const PLANS = resolve(sep, 'plans', 'trip');

describe('server of a plan', () => {
  it('starts in the folder of the plan file that cwd says', () => {
    expect(launchOf({ command: 'x', cwd: '.' }, PLANS).cwd).toBe(PLANS);
    expect(launchOf({ command: 'x', cwd: '..' }, PLANS).cwd).toBe(resolve(PLANS, '..'));
    expect(launchOf({ command: 'x', cwd: sep }, PLANS).cwd).toBe(resolve(sep));
  });

  it('without cwd starts where the command runs', () => {
    expect(launchOf({ command: 'x' }, PLANS).cwd).toBe(process.cwd());
  });

  it('has a command that is a path from the plan file, or a name from node_modules/.bin and PATH', () => {
    expect(launchOf({ command: './server.js', cwd: '..' }, PLANS).command).toBe(join(PLANS, 'server.js'));
    const { command, env } = launchOf({ command: 'server', cwd: '.' }, PLANS);
    expect(command).toBe('server');
    const folders = (env['PATH'] ?? '').split(delimiter);
    expect(folders.slice(0, 3)).toEqual([join(PLANS, 'node_modules', '.bin'), resolve(PLANS, '..', 'node_modules', '.bin'), resolve(sep, 'node_modules', '.bin')]);
    expect(folders.slice(3).join(delimiter)).toBe(process.env['PATH']);
  });

  it('gets the variables that the plan gives, PATH too', () => {
    expect(launchOf({ command: 'x', env: { PATH: 'mine', TOKEN: 't' } }, PLANS).env).toEqual({ PATH: 'mine', TOKEN: 't' });
  });
});
