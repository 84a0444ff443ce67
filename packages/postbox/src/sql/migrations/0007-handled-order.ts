import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** The order in which the inbox forgets: oldest first. Consumers wait while it is built. */
export const handledOrder: Migration = {
  version: 7,
  name: 'order of handled messages',
  breaking: false,
  up: (names) => [createHandledAtIndex(names)],
}

export function createHandledAtIndex({ index, handled }: Names): string {
  return `create index ${index.handled_at} on ${handled} (handled_at)`
}
