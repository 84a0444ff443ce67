import type { ExpectedView } from '../core/schema-surface.ts'
import type { Names } from './names.ts'

/** Which of the tables that an outbox may do without are there. */
export interface ViewedTables {
  readonly dead: boolean
  readonly delivered: boolean
}

export const allTables: ViewedTables = { dead: true, delivered: true }

const time = 'timestamp with time zone'

/** In order. */
const types = {
  id: 'uuid',
  queue: 'text',
  key: 'text',
  timer_id: 'text',
  status: 'text',
  attempts: 'integer',
  deliveries: 'integer',
  created_at: time,
  due_at: time,
  leased_until: time,
  first_attempt_at: time,
  last_attempt_at: time,
  delivered_at: time,
  failed_at: time,
  parked_at: time,
  failure_reason: 'text',
  last_error: 'text',
  generation: 'bigint',
  headers: 'jsonb',
  body: 'bytea',
  failure_history: 'jsonb',
} as const

type StatusColumn = keyof typeof types

/**
 * Every message, wherever it lies, and how it stands with it. The status is constant in each part, so that a condition on it leaves only
 * the parts that it means, and of these the indexes serve. A lease that has ended holds nobody back: its message is pending.
 *
 * Its conditions know no `or`: see `core/view-definition.ts`.
 */
export function statusView(names: Names, tables: ViewedTables): ExpectedView {
  return {
    name: names.status,
    relation: names.plain.status,
    columns: Object.entries(types).map(([name, type]) => ({ name, type })),
    reads: [
      names.messages,
      ...(tables.dead ? [names.dead] : []),
      ...(tables.delivered ? [names.delivered] : []),
    ],
    definition: definitionOf(names, tables),
  }
}

export function createStatusView(names: Names, tables: ViewedTables): string {
  return `create view ${names.status} as\n${definitionOf(names, tables)}`
}

function definitionOf(names: Names, { dead, delivered }: ViewedTables): string {
  return [
    ...messageParts(names),
    ...(dead ? [deadPart(names)] : []),
    ...(delivered ? [deliveredPart(names)] : []),
  ].join('\nunion all\n')
}

function messageParts({ messages }: Names): readonly string[] {
  // One that is held, or dead, has given its name up.
  const timer_id = 'coalesce(timer_id, fired_timer_id)'
  const alive = {
    timer_id,
    key: 'coalesce(key, later_key)',
    ...nulls('delivered_at', 'failed_at', 'parked_at', 'failure_reason'),
  }
  const isHeld = 'leased_until > statement_timestamp()'
  // Due never, which is no time to show.
  const failed = { timer_id, ...nulls('delivered_at', 'due_at') }
  return [
    `${selecting('pending', alive)}
  from ${messages}
 where failed_at is null and (${isHeld}) is not true`,
    `${selecting('in_flight', alive)}
  from ${messages}
 where failed_at is null and ${isHeld}`,
    `${selecting('failed', failed)}
  from ${messages}
 where failed_at is not null`,
  ]
}

function deadPart({ dead }: Names): string {
  return `${selecting('failed', nulls('due_at', 'leased_until', 'delivered_at', 'parked_at'))}
  from ${dead}`
}

function deliveredPart({ delivered }: Names): string {
  const unknown = nulls('due_at', 'leased_until', 'first_attempt_at', 'last_attempt_at')
  const never = nulls('failed_at', 'parked_at', 'failure_reason', 'last_error')
  return `${selecting('delivered', { ...unknown, ...never })}
  from ${delivered}`
}

type Expressions = Partial<Record<StatusColumn, string>>

function nulls(...columns: readonly StatusColumn[]): Expressions {
  return Object.fromEntries(columns.map((column) => [column, `null::${types[column]}`]))
}

/** Columns are what they are called, but for those that are given. */
function selecting(status: string, given: Expressions): string {
  const expressions: Expressions = { ...given, status: `'${status}'::text` }
  const columns = Object.keys(types).map((column) => {
    const expression = expressions[column as StatusColumn]
    return expression === undefined ? column : `${expression} as ${column}`
  })
  return `select ${columns.join(', ')}`
}
