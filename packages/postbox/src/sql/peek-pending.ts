import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { whereMarked } from './where-marked.ts'

export interface Peek {
  readonly queue: string | null
  readonly limit: number
  readonly mark: string | null
}

export interface PendingRow {
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  readonly timer: string | null
  readonly body: string
  readonly headers: string | null
  readonly attempts: string
  readonly deliveries: string
  readonly created: string
  readonly due: string | null
  readonly leased: string
  readonly generation: string | null
}

/**
 * Reads what waits, in the caller's transaction and without touching it: its own uncommitted rows, future rows and rows in
 * flight included, dead ones not. Everything comes back as text, which no client's type
 * parser and no setting of the session alters: postgres.js reads an escaped bytea as other bytes, without an error.
 */
export function peekPending(names: Names, peek: Peek): Statement<PendingRow, Peek> {
  return {
    name: 'peek_pending',
    text: `
select id::text as id,
       seq::text as seq,
       queue,
       coalesce(key, later_key) as key,
       coalesce(timer_id, fired_timer_id) as timer,
       encode(body, 'base64') as body,
       headers::text as headers,
       attempts::text as attempts,
       deliveries::text as deliveries,
       (extract(epoch from created_at) * 1000)::text as created,
       (extract(epoch from due_at) * 1000)::text as due,
       (leased_until > clock_timestamp() is true)::text as leased,
       generation::text as generation
  from ${names.messages}
 where ($1::text is null or queue = $1::text)
   and failed_at is null
   and ${whereMarked('$3')}
 order by ${names.messages}.seq
 limit $2::int`,
    values: [peek.queue, peek.limit, peek.mark],
    input: peek,
  }
}
