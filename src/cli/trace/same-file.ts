import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';

/** Where a file is, whatever names and links lead to it; of one that is not there yet, where it would be. */
const placeOf = async (file: string): Promise<string> => {
  try {
    const { dev, ino } = await stat(file, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    const folder = path.dirname(path.resolve(file));
    return path.join(await realpath(folder).catch(() => folder), path.basename(file));
  }
};

/** Whether what is written to one of two names would be read under the other. */
export const isSameFile = async (one: string, other: string): Promise<boolean> =>
  (await placeOf(one)) === (await placeOf(other));

/** Whether any of `files` is the one that `written` names. */
export const isOneOf = async (written: string, files: readonly string[]): Promise<boolean> =>
  (await Promise.all(files.map((file) => isSameFile(written, file)))).includes(true);
