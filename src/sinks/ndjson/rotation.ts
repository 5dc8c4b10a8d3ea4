import { lstat, readdir, realpath, rename, unlink } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

/** A file that was rotated away, and when: files of one millisecond are told apart by a number. */
interface RotatedFile {
  readonly path: string;
  readonly stamp: string;
  readonly number: number;
}

const STAMP = String.raw`(\d{8}T\d{9}Z)(?:-(\d{1,9}))?`;

/** `20261122T232215123Z`: names sort by it, and no file system minds any of its characters. */
const stampOf = (wallMs: number): string => new Date(wallMs).toISOString().replaceAll(/[-:.]/g, '');

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);

const partsOf = (path: string): { readonly folder: string; readonly stem: string; readonly extension: string } => {
  const extension = extname(path);
  return { folder: dirname(path), stem: basename(path, extension), extension };
};

/**
 * The files that were rotated away from a path, oldest first. Others in the folder are nobody's business here, however
 * alike they are called.
 */
async function rotatedFrom(path: string): Promise<RotatedFile[]> {
  const { folder, stem, extension } = partsOf(path);
  const pattern = new RegExp(`^${escaped(stem)}\\.${STAMP}${escaped(extension)}$`);
  const files = (await readdir(folder)).flatMap((name) => {
    const [, stamp, number = '0'] = pattern.exec(name) ?? [];
    return stamp === undefined ? [] : [{ path: join(folder, name), stamp, number: Number(number) }];
  });
  return files.toSorted((a, b) => (a.stamp === b.stamp ? a.number - b.number : a.stamp < b.stamp ? -1 : 1));
}

const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

/** Where the file at a path is, also behind a link; nothing where there is none. */
const realAt = async (path: string): Promise<string | undefined> => {
  try {
    return await realpath(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
};

/**
 * Moves a file out of the way, under a name that tells when. The names' order is the files' order, also where the clock
 * was set back. Where somebody was faster, nothing is left to do.
 */
export async function moveAway(path: string, wallMs: number): Promise<void> {
  const real = await realAt(path);
  if (real === undefined) return;
  const { folder, stem, extension } = partsOf(real);
  const newest = (await rotatedFrom(real)).at(-1);
  const now = stampOf(wallMs);
  const later = newest === undefined || now > newest.stamp;
  const stamp = later ? now : newest.stamp;
  const number = later ? 0 : newest.number + 1;
  const target = join(folder, `${stem}.${stamp}${number === 0 ? '' : `-${number}`}${extension}`);
  await rename(real, target).catch((error: unknown) => {
    if (!isGone(error)) throw error;
  });
}

/** The size of a file; nothing for what is none, which was not rotated away from anywhere, whatever its name is. */
const sizeOf = async (path: string): Promise<number | undefined> => {
  try {
    const stats = await lstat(path);
    return stats.isFile() ? stats.size : undefined;
  } catch {
    return undefined;
  }
};

/**
 * Deletes the oldest rotated files of a path until those left are no larger together than so many bytes.
 * @throws the error of the file system when one cannot be deleted; those after it are tried all the same
 */
export async function trimRotated(path: string, maxBytes: number): Promise<void> {
  const real = await realAt(path);
  if (real === undefined) return;
  const named = await rotatedFrom(real);
  const sizes = await Promise.all(named.map((file) => sizeOf(file.path)));
  const files = named.flatMap((file, index) => {
    const size = sizes[index];
    return size === undefined ? [] : [{ path: file.path, size }];
  });
  let bytes = files.reduce((sum, { size }) => sum + size, 0);
  let failure: Error | undefined;
  for (const file of files) {
    if (bytes <= maxBytes) break;
    try {
      await unlink(file.path);
      bytes -= file.size;
    } catch (error) {
      // Somebody was faster.
      if (isGone(error)) bytes -= file.size;
      else failure ??= error as Error;
    }
  }
  if (failure !== undefined) throw failure;
}
