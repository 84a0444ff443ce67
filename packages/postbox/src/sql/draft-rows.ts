import type { Conflict } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'

/** The columns that a message is inserted with. */
export const insertedColumns = 'id, queue, key, timer_id, body, headers, due_at, generation'

/**
 * When the row is due, by the database's clock; null (the hot lane) for now and for times that have passed. Counted from
 * the statement, not from the start of a transaction that may be minutes old.
 */
export function dueAt(delayMs: string, epochMs: string): string {
  return `case
      when ${delayMs} is not null then statement_timestamp() + make_interval(secs => ${delayMs} / 1000)
      when to_timestamp(${epochMs} / 1000) > statement_timestamp() then to_timestamp(${epochMs} / 1000)
    end`
}

/**
 * A plain insert has no such clause: a speculative insertion costs an extra WAL record per row. A replaced timer becomes a
 * new message in the old one's place; its seq lies below every claimer's cursor by now, so it must be in the due lane.
 */
export function onConflict(conflict: Conflict): string {
  const arbiter = `
  on conflict (queue, timer_id) where timer_id is not null and failed_at is null`
  switch (conflict) {
    case 'none':
      return ''
    case 'keep':
      return `${arbiter} do nothing`
    case 'replace':
      return `${arbiter} do update
     set id = excluded.id, key = excluded.key, body = excluded.body, headers = excluded.headers,
         due_at = coalesce(excluded.due_at, statement_timestamp()), generation = excluded.generation,
         created_at = now(), attempts = 0, deliveries = 0, first_attempt_at = null, last_attempt_at = null, last_error = null,
         failure_history = null
   where m.lease_token is null`
    default:
      return unreachable(conflict)
  }
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
