import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** The same within a queue. Publishers and claims wait while it is built. */
export const failedQueueOrder: Migration = {
  version: 6,
  name: 'order of messages that failed in place, by queue',
  breaking: false,
  up: (names) => [createFailedQueueIndex(names)],
}

export function createFailedQueueIndex({ index, messages }: Names): string {
  return `create index ${index.table_failed_queue} on ${messages} (queue, failed_at, seq) where failed_at is not null`
}
