import type { Column } from '../core/schema-shape.ts'
import type { Names } from './names.ts'

/** Each session that caches numbers hands out its own: rows would come out of the order that the cursor of a claim relies on. */
const parameters = [
  'increment 1',
  'minvalue 1',
  'maxvalue 9223372036854775807',
  'start 1',
  'cache 1',
  'no cycle',
]

const time = 'timestamp with time zone'

export function messageColumns(names: Names): readonly Column[] {
  return [
    numbered(names, 'seq', names.sequence),
    required('id', 'uuid'),
    bytewise(required('queue', 'text')),
    bytewise(optional('key', 'text')),
    bytewise(optional('timer_id', 'text')),
    required('body', 'bytea'),
    optional('headers', 'jsonb'),
    required('attempts', 'integer', '0'),
    required('deliveries', 'integer', '0'),
    required('created_at', time, 'now()'),
    optional('due_at', time),
    optional('first_attempt_at', time),
    optional('last_attempt_at', time),
    optional('lease_token', 'uuid'),
    optional('leased_until', time),
    optional('generation', 'bigint'),
    optional('failed_at', time),
    optional('failure_reason', 'text'),
    optional('last_error', 'text'),
    optional('failure_history', 'jsonb'),
    bytewise(optional('fired_timer_id', 'text')),
    bytewise(optional('later_key', 'text')),
    optional('parked_at', time),
    optional('after_dead', 'uuid'),
  ]
}

export function deadColumns(names: Names): readonly Column[] {
  return [
    numbered(names, 'dead_seq', names.deadSequence),
    required('original_seq', 'bigint'),
    required('id', 'uuid'),
    bytewise(required('queue', 'text')),
    bytewise(optional('key', 'text')),
    bytewise(optional('timer_id', 'text')),
    required('body', 'bytea'),
    optional('headers', 'jsonb'),
    required('attempts', 'integer'),
    required('deliveries', 'integer'),
    required('created_at', time),
    optional('first_attempt_at', time),
    optional('last_attempt_at', time),
    optional('generation', 'bigint'),
    required('failed_at', time, 'now()'),
    required('failure_reason', 'text'),
    optional('last_error', 'text'),
    optional('failure_history', 'jsonb'),
  ]
}

export function deliveredColumns(names: Names): readonly Column[] {
  return [
    numbered(names, 'delivered_seq', names.deliveredSequence),
    required('original_seq', 'bigint'),
    required('id', 'uuid'),
    bytewise(required('queue', 'text')),
    bytewise(optional('key', 'text')),
    bytewise(optional('timer_id', 'text')),
    required('body', 'bytea'),
    optional('headers', 'jsonb'),
    required('attempts', 'integer'),
    required('deliveries', 'integer'),
    required('created_at', time),
    optional('generation', 'bigint'),
    optional('failure_history', 'jsonb'),
    required('delivered_at', time, 'now()'),
  ]
}

export const operationColumns: readonly Column[] = [
  required('operation_id', 'uuid'),
  required('kind', 'text'),
  required('started_by', 'text'),
  required('filter', 'jsonb'),
  required('settings', 'jsonb'),
  required('started_at', time, 'now()'),
  required('updated_at', time, 'now()'),
  optional('finished_at', time),
  required('changed', 'bigint', '0'),
  required('conflicts', 'bigint', '0'),
  optional('last_due_at', time),
  optional('place', 'jsonb'),
]

export const handledColumns: readonly Column[] = [
  bytewise(required('consumer', 'text')),
  bytewise(required('id', 'text')),
  required('handled_at', time, 'now()'),
]

export const queueColumns: readonly Column[] = [
  bytewise(required('name', 'text')),
  required('message_order', 'text', `'none'::text`),
  optional('paused_at', time),
  optional('paused_by', 'text'),
  optional('resumed_at', time),
  optional('resumed_by', 'text'),
]

export const metaColumns: readonly Column[] = [
  required('version', 'integer'),
  required('name', 'text'),
  required('breaking', 'boolean'),
  required('applied_at', time, 'now()'),
]

function optional(name: string, type: string): Column {
  return { name, type, collation: null, notNull: false, default: null, identity: null }
}

function required(name: string, type: string, value: string | null = null): Column {
  return { ...optional(name, type), notNull: true, default: value }
}

function bytewise(column: Column): Column {
  return { ...column, collation: 'C' }
}

function numbered({ schema }: Names, name: string, sequence: string): Column {
  const sequenceName = sequence.slice(`${schema}.`.length)
  const identity = { always: true, sequence, sequenceName, parameters, isLogged: true }
  return { ...required(name, 'bigint'), identity }
}
