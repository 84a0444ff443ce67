import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface PendingRow {
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  readonly timer: string | null
  readonly body: Uint8Array
  readonly headers: string | null
  readonly attempts: number
  readonly deliveries: number
  readonly created: string
  readonly due: string | null
  readonly leased: boolean
  readonly generation: string | null
}

/**
 * Reads what waits, in the caller's transaction and without touching it: its own uncommitted rows, future rows and rows in
 * flight included, dead ones not. Times come back as milliseconds in text, which no client's type parser alters.
 */
export function peekPending(names: Names, queue: string | null, limit: number): Statement<PendingRow> {
  return {
    name: 'peek_pending',
    text: `
select id::text as id,
       seq::text as seq,
       queue,
       key,
       timer_id as timer,
       body,
       headers::text as headers,
       attempts,
       deliveries,
       (extract(epoch from created_at) * 1000)::text as created,
       (extract(epoch from due_at) * 1000)::text as due,
       lease_token is not null as leased,
       generation::text as generation
  from ${names.messages}
 where ($1::text is null or queue = $1::text)
   and failed_at is null
 order by ${names.messages}.seq
 limit $2::int`,
    values: [queue, limit],
  }
}
