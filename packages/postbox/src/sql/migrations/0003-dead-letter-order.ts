import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** The order in which all dead letters are listed, whatever their queue: newest first. Burials wait while it is built. */
export const deadLetterOrder: Migration = {
  version: 3,
  name: 'order of dead letters',
  breaking: false,
  up: (names) => [createDeadFailedIndex(names)],
}

export function createDeadFailedIndex({ index, dead }: Names): string {
  return `create index ${index.dead_failed} on ${dead} (failed_at, dead_seq)`
}
