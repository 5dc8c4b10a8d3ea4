import { isRecord, type Id } from './message.ts';

/** In `_meta` of what belongs to a task. */
const RELATED = 'io.modelcontextprotocol/related-task';

type Rename = (taskId: string) => string;

const inRecord = (value: unknown, rename: Rename): unknown => {
  if (!isRecord(value)) return value;
  const { taskId } = value;
  return typeof taskId === 'string' ? { ...value, taskId: rename(taskId) } : value;
};

/**
 * The same params or result under other task ids: of a task itself, of one that was made, of each in a list, and of
 * the one that it belongs to.
 */
export function withTaskIds(value: unknown, rename: Rename): unknown {
  if (!isRecord(value)) return value;
  const { task, tasks, _meta: meta } = value;
  return {
    ...(inRecord(value, rename) as object),
    ...('task' in value ? { task: inRecord(task, rename) } : {}),
    ...(Array.isArray(tasks) ? { tasks: tasks.map((each) => inRecord(each, rename)) } : {}),
    ...(isRecord(meta) && RELATED in meta ? { _meta: { ...meta, [RELATED]: inRecord(meta[RELATED], rename) } } : {}),
  };
}

/** Tasks that are still followed: nobody has to say that one is over. */
const TASKS_MAX = 1_000;

/** Who asked for what was answered by a task: its progress goes on under the request's token. */
export class AskedForTasks<T> {
  /** The oldest first. */
  readonly #asked = new Map<Id, T>();

  of(token: Id): T | undefined {
    return this.#asked.get(token);
  }

  /** Takes note of an answer, where that is a task. */
  answered(token: Id, asked: T, result: unknown): void {
    if (!isRecord(result) || !isRecord(result['task'])) return;
    this.#asked.set(token, asked);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > TASKS_MAX && oldest !== undefined) this.#asked.delete(oldest);
  }
}
