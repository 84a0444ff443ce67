import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** The order in which dead letters that stay among the messages are listed. Publishers and claims wait while it is built. */
export const failedOrder: Migration = {
  version: 5,
  name: 'order of messages that failed in place',
  breaking: false,
  up: (names) => [createFailedAtIndex(names)],
}

export function createFailedAtIndex({ index, messages }: Names): string {
  return `create index ${index.table_failed_at} on ${messages} (failed_at, seq) where failed_at is not null`
}
