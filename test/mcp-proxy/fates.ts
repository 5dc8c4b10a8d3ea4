import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** What a server did, line by line, in a file that outlives it. */
export interface Notes {
  readonly note: (line: string) => void;
  readonly noted: (line: string) => number;
}

export const notesIn = (path: string): Notes => ({
  note: (line) => appendFileSync(path, `${line}\n`),
  noted: (line) =>
    existsSync(path)
      ? readFileSync(path, 'utf8')
          .split('\n')
          .filter((each) => each === line).length
      : 0,
});

/** Ends or stops this process, where that is the fate; goes on where it is any other. */
export const strike = (fate: unknown): void => {
  if (fate === 'kill') process.kill(process.pid, 'SIGKILL');
  else if (fate === 'exit') process.exit(1); // oxlint-disable-line unicorn/no-process-exit
  else if (fate === 'freeze') process.kill(process.pid, 'SIGSTOP');
};
