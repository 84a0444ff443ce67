import type { Draft } from '../core/message.ts'
import { dueAt, dueOf } from './draft-rows.ts'

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
