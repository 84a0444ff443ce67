import type { Draft } from '../core/message.ts'
import { dueAt, dueOf } from './draft-rows.ts'

/** How the body of a draft comes with the record of the rest: the names of its members, with their types and alone, and the SQL expression of the bytes. */
interface BodyMembers {
  readonly shape: string
  readonly members: string
  readonly value: string
}

/** As one of its texts. */
export const inBase64: BodyMembers = { shape: 'body text', members: 'body', value: `decode(body, 'base64')` }

/** Cut out of a parameter that holds those of all drafts, one behind the other. */
export function inBytes(parameter: string): BodyMembers {
  return {
    shape: 'first int, size int',
    members: 'first, size',
    value: `substring(${parameter}::bytea from first for size)`,
  }
}

/** A draft inside a JSON text, as `jsonb_to_recordset` reads it: names and types, and the names alone. */
export function recordShape({ shape }: BodyMembers): string {
  return `id uuid, key text, timer text, ${shape}, headers jsonb, delay float8, epoch float8, generation bigint`
}

export function recordMembers({ members }: BodyMembers): string {
  return `id, key, timer, ${members}, headers, delay, epoch, generation`
}

/** Members that would be null are left out (undefined): parsing them took up to 18 % of a batch's time. */
export function recordOf(draft: Draft): Record<string, unknown> {
  return {
    ...restOf(draft),
    body: Buffer.from(draft.body.buffer, draft.body.byteOffset, draft.body.byteLength).toString('base64'),
  }
}

/** All but the body. */
function restOf(draft: Draft): Record<string, unknown> {
  const { delayMs, epochMs } = dueOf(draft.schedule)
  return {
    id: draft.id,
    key: draft.key ?? undefined,
    timer: draft.timerId ?? undefined,
    headers: draft.headers ?? undefined,
    delay: delayMs ?? undefined,
    epoch: epochMs ?? undefined,
    generation: draft.generation ?? undefined,
  }
}

/** The JSON text of all drafts, and the bytes of their bodies (see `inBytes`). */
export function recordsAndBytes(drafts: readonly Draft[]): readonly [string, Uint8Array] {
  let first = 1
  const records = drafts.map((draft) => {
    const record = restOf(draft)
    record['first'] = first
    record['size'] = draft.body.byteLength
    first += draft.body.byteLength
    return record
  })
  return [JSON.stringify(records), Buffer.concat(drafts.map(({ body }) => body))]
}

/** The values of the inserted columns, of such a record; `queue` is an SQL expression. */
export function valuesOfRecord(queue: string, { value }: BodyMembers): string {
  return `id, ${queue}, key, timer, ${value}, headers, ${dueAt('delay', 'epoch')}, generation`
}

/** Expressions: the queue's name, whether it is ordered, and whether a waiting timer is replaced. */
interface OrderedRecord {
  readonly queue: string
  readonly isOrdered: string
  readonly isReplacing: string
}

/**
 * The same with the column later_key. A message of an ordered queue that is not yet due has its key there: it neither waits for others of
 * its key nor keeps them waiting, and takes its place among them when it is due (docs/decisions/0037). So does a timer that may replace another: that one's place
 * lies before others that may be under way.
 */
export function valuesOfOrdered(
  { queue, isOrdered, isReplacing }: OrderedRecord,
  { value }: BodyMembers,
): string {
  const due = `case when ${isOrdered} and ${isReplacing} then coalesce(${dueAt('delay', 'epoch')}, statement_timestamp()) else ${dueAt('delay', 'epoch')} end`
  const isLater = `${isOrdered} and ${due} is not null`
  return `id, ${queue}, case when not (${isLater}) then key end, timer, ${value}, headers, ${due}, generation, case when ${isLater} then key end`
}
