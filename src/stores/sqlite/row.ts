import { dedupeRecordSchema, type DedupeRecord } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { sha256 } from '../../policy/key/sha256.ts';

/** Text as it is written: as JSON, which keeps what UTF-8 or a C string would not. */
export const written = (text: string): string => JSON.stringify(text);

const FINGERPRINT_LENGTH = 12;

const parsed = (text: unknown): unknown => {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
};

/**
 * The record of a row, checked: what was damaged or written by something else is not replayed.
 *
 * @throws `store_unavailable` with a fingerprint of the key, not with its content
 */
export function recordOf(row: Readonly<Record<string, unknown>>, path: string): DedupeRecord {
  const { success, data } = dedupeRecordSchema.safeParse(parsed(row['record']));
  const sound =
    success &&
    written(data.key) === row['key'] &&
    data.version === row['version'] &&
    data.expiresAtMs === row['expires_at'] &&
    (data.lockUntilMs ?? 0) === row['lock_until'];
  if (sound) return data;
  const fingerprint = sha256(String(parsed(row['key']) ?? row['key'])).slice(0, FINGERPRINT_LENGTH);
  throw new ToolExecutionError(
    'store_unavailable',
    `${path}: the record of the key with SHA-256 ${fingerprint}... is damaged; delete it by its key`,
    {
      code: 'store_damaged',
      classification: 'permanent',
    },
  );
}
