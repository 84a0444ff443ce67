import type { Names } from '../names.ts'
import { createReplayFunction } from '../replay-function.ts'
import { allTables, createStatusView } from '../status-view.ts'
import type { Migration } from './migration.ts'

/**
 * What ordered queues need of a message: the key that it will have when it is due, that it is dead and holds its key back, and which
 * message of its key died before it. A dead message that holds its key back stays in the index of the keys, and has one of its own. Publishers and
 * claims wait while they are built. The function of operators is replaced where it is, and keeps its grants.
 */
export const order: Migration = {
  version: 9,
  name: 'order by key',
  breaking: false,
  up: (names) => [
    addOrderColumns(names),
    `drop index ${names.schema}.${names.index.table_key}`,
    createKeyIndex(names),
    createParkedIndex(names),
    `drop view if exists ${names.status}`,
    createStatusView(names, allTables),
    createReplayFunction(names, { replace: true }),
  ],
}

export function addOrderColumns({ messages }: Names): string {
  return `alter table ${messages} add column later_key text collate "C", add column parked_at timestamptz, add column after_dead uuid`
}

export function createKeyIndex({ index, messages }: Names): string {
  return `create index ${index.table_key} on ${messages} (queue, key, seq) where ${inOrder('')}`
}

/** Few rows, so that keys which wait for somebody are found among any number of others. */
export function createParkedIndex({ index, messages }: Names): string {
  return `create index ${index.table_parked} on ${messages} (queue, key, seq) where parked_at is not null`
}

/** The messages among which those of a key are in order. `row`: what the columns are prefixed with. */
export function inOrder(row: string): string {
  return `${row}key is not null and (${row}failed_at is null or ${row}parked_at is not null)`
}
