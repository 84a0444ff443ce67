import type { Autovacuum, SchemaSqlOptions } from '../../core/schema-sql-options.ts'
import type { Names } from '../names.ts'
import type { Migration } from './migration.ts'

/** The tables of an outbox: messages, dead letters, inbox, queues. */
export const messages: Migration = {
  version: 1,
  name: 'messages',
  breaking: false,
  up: (names, options) => [
    createMessages(names, options),
    ...Object.values(createMessageIndexes(names)),
    createDead(names),
    ...Object.values(createDeadIndexes(names)),
    createHandled(names),
    createQueues(names),
  ],
}

/**
 * fillfactor 45: a leased row is 24 bytes wider than a free one and must find room on its page, or the claim rewrites every
 * index entry (100 % HOT at 45, 82 to 91 % at 50). vacuum_truncate off: truncating takes an exclusive lock on a
 * table that refills at once. Text is compared as bytes (collate "C"): index work is 40 % cheaper and no locale upgrade
 * can corrupt it.
 */
export function createMessages(names: Names, options: Required<SchemaSqlOptions>): string {
  const storage = Object.entries(storageParameters(options.autovacuum))
  return `create table ${names.messages} (
  seq bigint generated always as identity (sequence name ${names.sequence}),
  id uuid not null,
  queue text collate "C" not null,
  key text collate "C",
  timer_id text collate "C",
  body bytea not null,
  headers jsonb,
  attempts int not null default 0,
  deliveries int not null default 0,
  created_at timestamptz not null default now(),
  due_at timestamptz,
  first_attempt_at timestamptz,
  last_attempt_at timestamptz,
  lease_token uuid,
  leased_until timestamptz,
  generation bigint,
  failed_at timestamptz,
  failure_reason text,
  last_error text,
  failure_history jsonb,
  constraint ${names.index.table_pkey} primary key (seq),
  constraint ${names.index.table_lease} check (${leaseCheck})
) with (${storage.map(([name, value]) => `${name} = ${value}`).join(', ')})`
}

/** A lease is both or neither. */
export const leaseCheck = '(lease_token is null) = (leased_until is null)'

// No index and no predicate names a lease column: that is what keeps the claim HOT.
export function createMessageIndexes(
  names: Names,
): Readonly<Record<'table_ready' | 'table_due' | 'table_timer' | 'table_key' | 'table_failed', string>> {
  const { index, messages } = names
  return {
    table_ready: `create index ${index.table_ready} on ${messages} (queue, seq) where due_at is null`,
    table_due: `create index ${index.table_due} on ${messages} (queue, due_at, seq) where due_at is not null`,
    table_timer: `create unique index ${index.table_timer} on ${messages} (queue, timer_id) where timer_id is not null and failed_at is null`,
    table_key: `create index ${index.table_key} on ${messages} (queue, key, seq) where key is not null and failed_at is null`,
    table_failed: `create index ${index.table_failed} on ${messages} (id) where failed_at is not null`,
  }
}

/** Keyed by an identity of its own, never by the message's id: a second burial of the same id must not fail. */
export function createDead(names: Names): string {
  return `create table ${names.dead} (
  dead_seq bigint generated always as identity (sequence name ${names.deadSequence}),
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
  first_attempt_at timestamptz,
  last_attempt_at timestamptz,
  generation bigint,
  failed_at timestamptz not null default now(),
  failure_reason text not null,
  last_error text,
  failure_history jsonb,
  constraint ${names.index.dead_pkey} primary key (dead_seq)
)`
}

export function createDeadIndexes({
  index,
  dead,
}: Names): Readonly<Record<'dead_id' | 'dead_queue', string>> {
  return {
    dead_id: `create index ${index.dead_id} on ${dead} (id)`,
    dead_queue: `create index ${index.dead_queue} on ${dead} (queue, failed_at)`,
  }
}

export function createHandled(names: Names): string {
  return `create table ${names.handled} (
  consumer text collate "C" not null,
  id text collate "C" not null,
  handled_at timestamptz not null default now(),
  constraint ${names.index.handled_pkey} primary key (consumer, id)
)`
}

export function createQueues(names: Names): string {
  return `create table ${names.queues} (
  name text collate "C" not null,
  message_order text not null default 'none',
  paused_at timestamptz,
  paused_by text,
  constraint ${names.index.queues_pkey} primary key (name)
)`
}

/** Every message dies young, so vacuum must come by number of rows, not by share of the table, and without pauses. */
export function storageParameters(autovacuum: Autovacuum | false): Readonly<Record<string, number | string>> {
  const fixed = { fillfactor: 45, vacuum_truncate: 'off' }
  if (autovacuum === false) return fixed
  const { threshold = 1000, insertThreshold = 1000, costDelay = 0, costLimit } = autovacuum
  const vacuum = {
    autovacuum_vacuum_scale_factor: 0,
    autovacuum_vacuum_threshold: threshold,
    autovacuum_vacuum_insert_scale_factor: 0,
    autovacuum_vacuum_insert_threshold: insertThreshold,
    autovacuum_vacuum_cost_delay: costDelay,
    ...(costLimit === undefined ? {} : { autovacuum_vacuum_cost_limit: costLimit }),
  }
  // Bodies over 2 KB live in the TOAST table, which has thresholds of its own.
  const toast = Object.fromEntries(Object.entries(vacuum).map(([name, value]) => [`toast.${name}`, value]))
  return { ...fixed, ...vacuum, ...toast }
}
