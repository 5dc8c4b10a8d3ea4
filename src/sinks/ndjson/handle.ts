import { constants, type Stats } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';

/** A header is far shorter. */
export const HEADER_BYTES = 1_024;
const NEWLINE = 10;

/** Opens a file to which lines are added. */
export const openToAppend = (path: string): Promise<FileHandle> => {
  const { O_APPEND, O_CREAT, O_RDWR } = constants;
  // Events can name people: not for everybody on the machine.
  return open(path, O_APPEND | O_CREAT | O_RDWR, 0o600);
};

/** Whether the file ends within a line, as after a kill. */
export const isTorn = async (file: FileHandle, size: number): Promise<boolean> => {
  if (size === 0) return false;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] !== NEWLINE;
};

/** When a file began, in milliseconds since the Unix epoch: its header says so, or else its file system. */
export const beganAtMs = async (file: FileHandle, { size, birthtimeMs }: Stats): Promise<number | undefined> => {
  if (size === 0) return undefined;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
  try {
    const [line = ''] = buffer.subarray(0, bytesRead).toString('utf8').split('\n');
    const { time } = JSON.parse(line) as { readonly time?: unknown };
    const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    return Number.isNaN(ms) ? birthtimeMs : ms;
  } catch {
    return birthtimeMs;
  }
};

/** Whether they are of one file. */
export const isSame = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;

/** The file at a path, if there is one. */
export const statAt = async (path: string): Promise<Stats | undefined> => {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};
