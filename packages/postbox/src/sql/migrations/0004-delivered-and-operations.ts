import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** Where delivered messages are kept for audit, and what operators did to many dead letters at once. */
export const deliveredAndOperations: Migration = {
  version: 4,
  name: 'delivered messages and operations',
  breaking: false,
  up: (names) => [
    createDelivered(names),
    ...Object.values(createDeliveredIndexes(names)),
    createOperations(names),
    createOperationsIndex(names),
  ],
}

/** Keyed by an identity of its own: after a failover a seq can be given out again, and no delivery may fail of that. */
export function createDelivered(names: Names): string {
  return `create table ${names.delivered} (
  delivered_seq bigint generated always as identity (sequence name ${names.deliveredSequence}),
  original_seq bigint not null,
  id uuid not null,
  queue text collate "C" not null,
  key text collate "C",
  timer_id text collate "C",
  body bytea not null,
  headers jsonb,
  attempts int not null,
  deliveries int not null,
  created_at timestamptz not null,
  generation bigint,
  failure_history jsonb,
  delivered_at timestamptz not null default now(),
  constraint ${names.index.delivered_pkey} primary key (delivered_seq)
)`
}

/** Two, and no more: every delivered message pays for them. */
export function createDeliveredIndexes({
  index,
  delivered,
}: Names): Readonly<Record<'delivered_id' | 'delivered_at', string>> {
  return {
    delivered_id: `create index ${index.delivered_id} on ${delivered} (id)`,
    delivered_at: `create index ${index.delivered_at} on ${delivered} (delivered_at, delivered_seq)`,
  }
}

/** Who did what to which dead letters, and how far it came: written by the statements that do it, so that it can be resumed. */
export function createOperations(names: Names): string {
  return `create table ${names.operations} (
  operation_id uuid not null,
  kind text not null,
  started_by text not null,
  filter jsonb not null,
  settings jsonb not null,
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  changed bigint not null default 0,
  conflicts bigint not null default 0,
  last_due_at timestamptz,
  place jsonb,
  constraint ${names.index.operations_pkey} primary key (operation_id)
)`
}

export function createOperationsIndex({ index, operations }: Names): string {
  return `create index ${index.operations_started} on ${operations} (started_at, operation_id)`
}
