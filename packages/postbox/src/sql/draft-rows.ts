import type { Conflict, Draft } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'

/** The columns that a message is inserted with. */
export const insertedColumns = 'id, queue, key, timer_id, body, headers, due_at, generation'

/** A draft inside a JSON text, as `jsonb_to_recordset` reads it: names and types, and the names alone. */
export const recordShape =
  'id uuid, key text, timer text, body text, headers jsonb, delay float8, epoch float8, generation bigint'
export const recordMembers = 'id, key, timer, body, headers, delay, epoch, generation'

/** Members that would be null are left out (undefined): parsing them took up to 18 % of a batch's time. */
export function recordOf(draft: Draft): Record<string, unknown> {
  const { delayMs, epochMs } = dueOf(draft.schedule)
  return {
    id: draft.id,
    key: draft.key ?? undefined,
    timer: draft.timerId ?? undefined,
    body: Buffer.from(draft.body.buffer, draft.body.byteOffset, draft.body.byteLength).toString('base64'),
    headers: draft.headers ?? undefined,
    delay: delayMs ?? undefined,
    epoch: epochMs ?? undefined,
    generation: draft.generation ?? undefined,
  }
}

/** The values of the inserted columns, of such a record; `queue` is an SQL expression. */
export function valuesOfRecord(queue: string): string {
  return `id, ${queue}, key, timer, decode(body, 'base64'), headers, ${dueAt('delay', 'epoch')}, generation`
}

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
