import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** Who resumed a queue, and when: whoever was paused is told by whom that ended. A process of the version before reads none of it. */
export const resumedQueues: Migration = {
  version: 10,
  name: 'resumed queues',
  breaking: false,
  up: (names) => [addResumed(names)],
}

export function addResumed({ queues }: Names): string {
  return `alter table ${queues} add column resumed_at timestamptz, add column resumed_by text`
}
