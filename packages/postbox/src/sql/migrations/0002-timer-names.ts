import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/**
 * Where a claimed timer keeps its name while it is free for others (docs/decisions/0019). No index names the column. A column that may be
 * null rewrites nothing: the lock is short, however long the table is. A process of the version before never reads it.
 */
export const timerNames: Migration = {
  version: 2,
  name: 'timer names',
  breaking: false,
  up: (names) => [addFiredTimerId(names)],
}

export function addFiredTimerId({ messages }: Names): string {
  return `alter table ${messages} add column fired_timer_id text collate "C"`
}
