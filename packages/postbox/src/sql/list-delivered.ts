import type { DeliveredPageQuery } from '../core/delivered-options.ts'
import { type Bind, binder, endOf, isBefore, largestOfIndex, microseconds, time } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface DeliveredRow {
  readonly seq: string
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timer: string | null
  readonly body: string
  readonly headers: string | null
  readonly attempts: string
  readonly deliveries: string
  readonly created: string
  readonly generation: string | null
  readonly history: string | null
  readonly delivered: string
  /** The same in microseconds. */
  readonly micros: string
}

/** Reads rows of the table `d`, all as text. */
export const readableDelivered = `d.delivered_seq::text as seq,
       d.id::text as id,
       d.queue,
       d.key,
       d.timer_id as timer,
       encode(d.body, 'base64') as body,
       d.headers::text as headers,
       d.attempts::text as attempts,
       d.deliveries::text as deliveries,
       (extract(epoch from d.created_at) * 1000)::text as created,
       d.generation::text as generation,
       d.failure_history::text as history,
       (extract(epoch from d.delivered_at) * 1000)::text as delivered,
       (extract(epoch from d.delivered_at) * 1000000)::bigint::text as micros`

/**
 * Reads a page of delivered messages, newest first, and one row more: whoever gets it knows that there is a next page. Times and the place
 * of the page before are a stretch of one index; queue and key are compared row by row, because every delivery would pay for their indexes.
 */
export function listDelivered(
  names: Names,
  page: DeliveredPageQuery,
): Statement<DeliveredRow, DeliveredPageQuery> {
  const { bind, values } = binder()
  const conditions = conditionsOf(page, bind).join('\n   and ')
  return {
    name: 'list_delivered',
    text: `
select ${readableDelivered}
  from ${names.delivered} as d
 where ${conditions}
 order by d.delivered_at desc, d.delivered_seq desc
 limit ${bind(page.limit + 1)}::int`,
    values,
    input: page,
  }
}

function conditionsOf({ query, after }: DeliveredPageQuery, bind: Bind): readonly string[] {
  const { queue, key, sinceMs, untilMs } = query
  const spot = '(d.delivered_at, d.delivered_seq)'
  const since = sinceMs === null ? `'-infinity'` : time(bind(sinceMs))
  const left = after !== null && isBefore(after.deliveredMicros, untilMs) ? after : null
  return [
    `${spot} >= (${since}, 0)`,
    // One upper end, or Postgres begins at the higher one: see `selecting`.
    left === null
      ? `${spot} <= (${endOf(untilMs, bind)}, ${largestOfIndex})`
      : `${spot} < (${microseconds(bind(left.deliveredMicros))}, ${bind(left.seq)}::text::bigint)`,
    queue === null ? [] : `d.queue = ${bind(queue)}::text`,
    key === null ? [] : `d.key = ${bind(key)}::text`,
  ].flat()
}
