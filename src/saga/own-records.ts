/** By which name the store lists journals. No tool can have it. */
export const JOURNAL_TOOL = 'spillway/turn';
export const PAGE_TOOL = 'spillway/turn-page';
export const LEASE_TOOL = 'spillway/turn-lease';
/** Whether a record is a turn's own, and of no call. */
export const isOwnRecord = (tool: string): boolean => [JOURNAL_TOOL, PAGE_TOOL, LEASE_TOOL].includes(tool);
