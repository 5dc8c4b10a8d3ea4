import type { DedupeClaim, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { createExperience, type Experience, type ExperienceOptions } from '../policy/recovery/experience.ts';

const DAY_MS = 86_400_000;
/** What nobody saved for a month is of no use any more. */
const KEPT_MS = 30 * DAY_MS;
const SAVING_MS = 10_000;

const keyOf = (name: string): string => `experience:${name}`;

const claimOf = (name: string): DedupeClaim => ({
  key: keyOf(name),
  tool: 'experience',
  idempotencyKey: name,
  request: { sessionKey: '', actorId: '', requestId: name, paramsDigest: '' },
  leaseMs: SAVING_MS,
  ttlMs: SAVING_MS,
});

/**
 * Saves what was learned where calls are remembered, so that the next process begins with it. The last one to
 * save is what is loaded.
 *
 * @param name whose experience it is. Default `default`
 * @returns false when another saves at the same moment: then that is what is saved
 * @throws what the store throws
 *
 * @example
 * const store = memoryStore();
 * const experience = await loadExperience(store);
 * const spillway = createSpillway({ tools, store, experience });
 * await saveExperience(store, experience);
 */
export async function saveExperience(
  store: DedupeStore,
  experience: Experience,
  name: string = 'default',
): Promise<boolean> {
  const before = await store.get(keyOf(name));
  const { created, record } = await store.setIfNotExists(claimOf(name), before?.record.version);
  if (!created) return false;
  const saved = await store.compareAndSet(keyOf(name), record.version, {
    state: 'done',
    ttlMs: KEPT_MS,
    payload: JSON.stringify(experience),
  });
  return saved !== undefined;
}

/**
 * What was saved with `saveExperience`, or an empty experience.
 * @throws `store_unavailable` for a record that cannot be read; RangeError for an option out of its range; what the
 * store throws
 */
export async function loadExperience(
  store: DedupeStore,
  options: ExperienceOptions = {},
  name: string = 'default',
): Promise<Experience> {
  const { record } = (await store.get(keyOf(name))) ?? {};
  const fresh = createExperience(options);
  if (record?.payload === undefined) return fresh;
  try {
    return createExperience(options, JSON.parse(record.payload));
  } catch (cause) {
    throw new ToolExecutionError(
      'store_unavailable',
      `The experience ${name} in the store cannot be read; delete its record to begin anew`,
      { cause },
    );
  }
}
