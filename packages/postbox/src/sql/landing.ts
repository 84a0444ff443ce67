// Where a dead letter lands when it lives again: what the statements of a replay share.
import { keptColumns } from './dead-columns.ts'
import { lockCountedKeys } from './lock-keys.ts'
import type { Names } from './names.ts'

/** `in_place`: before those that it kept waiting. `behind_key`: behind all of its key that is there by then. `anywhere`: its queue has no order. */
export type Landing = 'in_place' | 'behind_key' | 'anywhere'

/**
 * Of a row of `taken`. What has its place still, has held it all the time. Whatever has lost it goes to the end: a row that appeared before one that runs
 * would break the order. Asked of the table, since operators may not know of the order.
 */
export function landingOf(names: Pick<Names, 'queues'>): string {
  return `case
           when parked_at is not null then 'in_place'
           when key is not null
            and ${orderOf(names, 'taken.queue')} = 'key' then 'behind_key'
           else 'anywhere'
         end`
}

/** What is written down of a queue, an SQL expression; null: nothing is. By the key, for each row: an `exists` may be hashed, and read all queues. */
export function orderOf({ queues }: Pick<Names, 'queues'>, queue: string): string {
  return `(select q.message_order from ${queues} as q where q.name = ${queue})`
}

/** Whether no waiting timer has the name of a row of `taken`. Not by `exists`, which may be hashed, and would then read every timer there is. */
export function isNameFree(names: Names): string {
  return `(select true
             from ${names.messages} as t
            where t.queue = taken.queue
              and t.timer_id = taken.timer
              and t.failed_at is null
            limit 1) is null`
}

/** When a row of `replayed` with a landing is due at once in the due lane: its seq lies below every cursor, or it takes its place as timers do. */
export const isDueNow = `lands = 'in_place' or (place = 'quarantined' and lands = 'anywhere') or (lands = 'behind_key' and timer is not null)`

/** Those that are inserted anew. The others are set free where they lie. */
export const isInserted = `(place = 'moved' or lands = 'behind_key')`

/**
 * `ordered`: whoever reads it has the locks of the keys behind which rows of `replayed` are inserted, as publishers have. Not of those that are due
 * later, nor of timers: they get their place from `joinKeys`, and nobody who holds a key waits for the name of a timer.
 */
export function lockLandings(names: Names): string {
  return lockCountedKeys(
    names,
    `(select queue, key from replayed where lands = 'behind_key' and due is null)`,
  )
}

const isLater = `lands = 'behind_key' and due is not null`

/** What a replay writes anew; everything else that was kept of the message comes back as it was. */
const renewed: readonly string[] = ['deliveries', 'generation', 'failure_history']
const kept = keptColumns.filter((column) => !renewed.includes(column))

/** The columns of an insert, and its values of a row of `replayed`. */
export const landedColumns = `${kept.join(', ')}, later_key, generation, failure_history, timer_id, due_at`
export const landedValues = `${kept
  .map((column) => (column === 'key' ? `case when not (${isLater}) then key end` : column))
  .join(', ')}, case when ${isLater} then key end, generation_after, history_after, timer, due`

/**
 * What makes a row `m` live again, where it lies, by what is known of it in `r`. Without the name of its timer, if another one waits that has it: only where it
 * keeps its place; elsewhere it stays dead.
 */
export const lifeAgain = `due_at = r.due,
         generation = r.generation_after,
         failure_history = r.history_after,
         timer_id = case when r.is_named then r.timer end,
         fired_timer_id = case when not r.is_named then r.timer end,
         attempts = 0,
         deliveries = 0,
         first_attempt_at = null,
         last_attempt_at = null,
         failed_at = null,
         parked_at = null,
         failure_reason = null,
         last_error = null`
