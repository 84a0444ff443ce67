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
    headers: draft.headers ?? undefined,
    delay: delayMs ?? undefined,
    epoch: epochMs ?? undefined,
    generation: draft.generation ?? undefined,
    body: Buffer.from(draft.body.buffer, draft.body.byteOffset, draft.body.byteLength).toString('base64'),
  }
}

const body = `decode(body, 'base64')`
const scheduled = dueAt('delay', 'epoch')

/** The values of the inserted columns, of such a record, which also names its queue. */
export const valuesOfRecord = `id, queue, key, timer, ${body}, headers, ${scheduled}, generation`

const due = `case when is_ordered and conflict = 'replace' then coalesce(${scheduled}, statement_timestamp()) else ${scheduled} end`
const isLater = `is_ordered and ${due} is not null`

/**
 * The same with the column later_key, of a record that says whether its queue is in order (`is_ordered`). A message of an ordered queue that is not yet due has its key there: it neither waits for others of
 * its key nor keeps them waiting, and takes its place among them when it is due (docs/decisions/0037). So does a timer that may replace another: that one's place
 * lies before others that may be under way.
 */
export const valuesOfOrdered = `id, queue, case when not (${isLater}) then key end, timer, ${body}, headers, ${due}, generation, case when ${isLater} then key end`
