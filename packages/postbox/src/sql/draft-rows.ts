import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'

/** The columns that a message is inserted with, and where it may be one of an ordered queue. */
export const insertedColumns = 'id, queue, key, timer_id, body, headers, due_at, generation'
export const orderedColumns = `${insertedColumns}, later_key`

/**
 * When the row is due, by the database's clock; null (the hot lane) for now and for times that have passed. Counted from
 * the statement, not from the start of a transaction that may be minutes old.
 */
export function dueAt(delayMs: string, epochMs: string): string {
  return `case
      when ${delayMs} is not null then ${dueAfter(delayMs)}
      ${whenLater(epochMs)}
    end`
}

/** The same for a row of which it is known that it has a delay, or that it has a time. */
export function dueAfter(delayMs: string): string {
  return `statement_timestamp() + make_interval(secs => ${delayMs} / 1000)`
}

export function dueFrom(epochMs: string): string {
  return `case ${whenLater(epochMs)} end`
}

function whenLater(epochMs: string): string {
  return `when to_timestamp(${epochMs} / 1000) > statement_timestamp() then to_timestamp(${epochMs} / 1000)`
}

export function dueOf(schedule: Schedule): {
  readonly delayMs: number | null
  readonly epochMs: number | null
} {
  switch (schedule.kind) {
    case 'now':
      return { delayMs: null, epochMs: null }
    case 'after':
      return { delayMs: schedule.delayMs, epochMs: null }
    case 'at':
      return { delayMs: null, epochMs: schedule.epochMs }
    default:
      return unreachable(schedule)
  }
}
