import { describe, expect, it } from 'vitest';
import { UsageError, parseCommand } from '../../src/cli/arguments/run.ts';

describe('command line', () => {
  it('run takes a plan and its options in any order', () => {
    expect(
      parseCommand([
        'run',
        '--json',
        'plan.yaml',
        '--seed',
        '7',
        '--trace=t.ndjson',
        '--strict',
        '--ascii',
        '--no-color',
      ]),
    ).toEqual({
      name: 'run',
      planPath: 'plan.yaml',
      json: true,
      strict: true,
      ascii: true,
      color: false,
      seed: 7,
      tracePath: 't.ndjson',
    });
  });

  it('without options draws in colour, in unicode, with chance', () => {
    expect(parseCommand(['run', 'plan.yaml'])).toEqual({
      name: 'run',
      planPath: 'plan.yaml',
      json: false,
      strict: false,
      ascii: false,
      color: true,
    });
  });

  it.each([[['--help']], [['run', '-h']], [['run', 'plan.yaml', '--help']]])('asks for help: %j', (args) => {
    expect(parseCommand(args)).toEqual({ name: 'help' });
  });

  it('R-8.3 takes the trace context of the turn', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(parseCommand(['run', 'plan.yaml', '--traceparent', traceparent])).toMatchObject({ traceparent });
  });

  it('asks for the version', () => {
    expect(parseCommand(['--version'])).toEqual({ name: 'version' });
  });

  it.each([
    [[], 'a command is missing'],
    [['walk'], 'there is no command "walk"'],
    [['run'], 'the plan file is missing'],
    [['run', ''], 'the plan file is missing'],
    [['run', 'a', 'b'], 'one plan file, not 2'],
    [['run', 'a', '--sed', '1'], 'there is no option --sed; did you mean --seed?'],
    [['run', 'a', '--seed'], 'argument missing'],
    [['run', 'a', '--seed', 'x'], '--seed must be an integer from 0 to 4294967295, not "x"'],
    [['run', 'a', '--seed=-1'], '--seed must be an integer'],
    [['run', 'a', '--seed', '4294967296'], '--seed must be an integer'],
    [['run', 'a', '--trace='], '--trace needs the name of a file'],
    [['run', 'a', '--traceparent', 'abc'], '--traceparent must be a W3C traceparent, such as 00-'],
    [['run', 'a', '--json=yes'], 'does not take an argument'],
  ])('refuses %j and says what to do', (args, message) => {
    expect(() => parseCommand(args)).toThrow(UsageError);
    expect(() => parseCommand(args)).toThrow(message);
  });
});
