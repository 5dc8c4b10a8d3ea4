import type { Runtime } from '../../contract/runtime.ts';
import { checkKeys, checkNumber, integer, integerOrInfinity, positiveDuration } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';

/** Called with a failure of the file system; what it throws or rejects with is dropped. */
export type NdjsonErrorListener = (error: Error) => unknown;

/** How much may wait for the disk, and when the file is rotated. */
export interface NdjsonSinkOptions {
  /** How many bytes may wait for the disk; further events are dropped and counted. Default 8 MiB. */
  readonly maxWaitingBytes?: number;
  /** How long after a failure of the file system the sink tries again, in milliseconds. Default 1,000. */
  readonly retryMs?: number;
  /**
   * The file is rotated before it would be larger, in bytes from 4,096: it is renamed to
   * `trace.20261122T232215123Z.ndjson` for `trace.ndjson`, and a new one begins. Only an event that is larger by itself
   * has a file that is. Default: no limit.
   */
  readonly maxFileBytes?: number;
  /**
   * The file is rotated by the first event that finds it so old, in milliseconds; its header says when it began.
   * Default: no limit.
   */
  readonly maxFileAgeMs?: number;
  /**
   * What the file and those rotated away from it may take together, in bytes: the oldest are deleted. Needs
   * `maxFileBytes`, and twice of it at least. Other files of the folder are neither counted nor touched. Default: no
   * limit.
   */
  readonly maxFolderBytes?: number;
  /**
   * Called with a failure of the file system once, and again only after what failed has worked in between. Default:
   * nobody is; `report.error` has the last one.
   */
  readonly onError?: NdjsonErrorListener;
  /** Clock for headers and file names, and timers. Default: the machine's. */
  readonly runtime?: Runtime;
}

const FILE_BYTES_MIN = 4_096;
const OPTIONS = ['maxWaitingBytes', 'retryMs', 'maxFileBytes', 'maxFileAgeMs', 'maxFolderBytes', 'onError', 'runtime'];

/** @throws RangeError for an option that does not exist or is out of its range */
export function checkedOptions(options: NdjsonSinkOptions): Required<Omit<NdjsonSinkOptions, 'onError'>> {
  checkKeys('ndjsonSink', options, OPTIONS);
  const {
    maxWaitingBytes = 8 * 2 ** 20,
    retryMs = 1_000,
    maxFileBytes = Infinity,
    maxFileAgeMs = Infinity,
    maxFolderBytes = Infinity,
  } = options;
  const { onError, runtime = liveRuntime } = options;
  checkNumber('maxWaitingBytes', maxWaitingBytes, integer(1, 2 ** 31));
  checkNumber('retryMs', retryMs, positiveDuration);
  checkNumber('maxFileBytes', maxFileBytes, integerOrInfinity(FILE_BYTES_MIN, Number.MAX_SAFE_INTEGER));
  if (maxFileAgeMs !== Infinity) checkNumber('maxFileAgeMs', maxFileAgeMs, positiveDuration);
  checkNumber('maxFolderBytes', maxFolderBytes, integerOrInfinity(2 * FILE_BYTES_MIN, Number.MAX_SAFE_INTEGER));
  if (maxFolderBytes !== Infinity && maxFolderBytes < 2 * maxFileBytes) {
    throw new RangeError(
      'maxFolderBytes must be at least twice maxFileBytes, which it needs: a folder is kept small by ' +
        'deleting files that are full',
    );
  }
  if (onError !== undefined && typeof onError !== 'function')
    throw new RangeError(`onError must be a function, not ${typeof onError}`);
  return { maxWaitingBytes, retryMs, maxFileBytes, maxFileAgeMs, maxFolderBytes, runtime };
}
