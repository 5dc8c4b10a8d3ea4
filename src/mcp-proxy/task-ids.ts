import { isRecord } from './message.ts';

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
