import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/**
 * Where a claimed timer keeps its name while it is free for others (docs/decisions/0019). No index names the column. A column that may be
 * null rewrites nothing: the lock is short, however long the table is. A process of the version before never reads it.
 *
 * And the order in which all dead letters are listed, whatever their queue: newest first. Before the other, which locks everybody out until the
 * step is over: an index takes its time.
 */
export const decisions: Migration = {
  version: 2,
  name: 'timer names, order of dead letters',
  breaking: false,
  up: (names) => [createDeadFailedIndex(names), addFiredTimerId(names)],
}

export function addFiredTimerId({ messages }: Names): string {
  return `alter table ${messages} add column fired_timer_id text collate "C"`
}

export function createDeadFailedIndex({ index, dead }: Names): string {
  return `create index ${index.deadFailed} on ${dead} (failed_at, dead_seq)`
}
