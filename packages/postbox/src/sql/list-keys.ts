import type { BlockedState, KeyListQuery } from '../core/key-options.ts'
import { binder, microseconds } from './dead-letters.ts'
import { orderOf } from './landing.ts'
import { inOrder } from './migrations/0009-order.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** A key that waits, or (`place`) how far was looked, if there is more behind it: the page may be short then. All as text. */
export interface KeyRow {
  readonly kind: 'key' | 'place'
  readonly state: BlockedState
  readonly key: string | null
  readonly seq: string
  readonly id: string | null
  readonly attempts: string | null
  readonly reason: string | null
  readonly error: string | null
  readonly since: string | null
  readonly due: string | null
  /** When it is due, in microseconds since 1970; null of one that is parked. */
  readonly micros: string | null
  /** How many wait behind it, and where the count stops. */
  readonly waiting: string | null
}

/** Rows that are due later, most of which may be timers that hold nothing back: so many one page looks at. */
export const mostLaterLooks = 2_000
/** Where the count of those that wait behind a message stops. */
export const mostWaiting = 1_000

/**
 * Reads a page of the keys of an ordered queue whose first message keeps the others waiting, and one more: first those that are parked, by key, from an
 * index of their own; then those that are to be tried again, by the time of that, from the index of what is due. What is due later and has
 * a key is the first of it: only firsts are put off, and scheduled messages have no key yet (0037). Those of one time (put off by one statement) by seq, as the
 * next page goes on: by key, a page that ends among them would leave some out. `once` is what it is in a claim: without it, a table that
 * was never analysed is read and sorted as a whole.
 */
export function listKeys(names: Names, page: KeyListQuery): Statement<KeyRow, KeyListQuery> {
  const { bind, values } = binder()
  const queue = `${bind(page.queue)}::text`
  const limit = `limit ${bind(page.limit + 1)}::int`
  const after = page.after
  const isParkedOver = page.state === 'retrying' || after?.state === 'retrying'
  const fromKey = bind(after?.state === 'parked' ? after.key : '')
  const fromDue =
    after?.state === 'retrying'
      ? { at: microseconds(bind(after.dueMicros)), seq: `${bind(after.seq)}::text::bigint` }
      : { at: `timestamptz '-infinity'`, seq: '0::bigint' }
  const none = ' and false'
  return {
    name: 'list_keys',
    text: `
with asked as materialized (
  select ${queue} as queue, ${bind(page.limit)}::int as size
), parked as materialized (
  select p.*
    from asked as w
   cross join lateral (
     select m.queue, m.key, m.seq, m.id, m.attempts, m.failure_reason, m.last_error, m.parked_at as since, null::timestamptz as due_at
       from ${names.messages} as m, generate_series(w.size, w.size) as once
      where m.queue = w.queue
        and m.key > ${fromKey}::text
        and m.parked_at is not null${isParkedOver ? none : ''}
      order by m.queue, m.key, m.seq
      limit w.size + 1) as p
), later as materialized (
  select l.*
    from asked as w
   cross join lateral (
     select m.queue, m.key, m.seq, m.due_at
       from ${names.messages} as m, generate_series(w.size, w.size) as once
      where m.queue = w.queue
        and (m.due_at, m.seq) > (greatest(now(), ${fromDue.at}), case when now() <= ${fromDue.at} then ${fromDue.seq} else 0 end)
        and m.due_at < 'infinity'${page.state === 'parked' ? none : ''}
      order by m.due_at, m.seq
      limit ${mostLaterLooks}) as l
   where ${orderOf(names, 'w.queue')} = 'key'
     and (select count(*) from parked) <= w.size
), retrying as materialized (
  select m.queue, m.key, m.seq, m.id, m.attempts, m.failure_reason, m.last_error, m.first_attempt_at as since, m.due_at
    from (select seq from later where key is not null order by due_at, seq ${limit}) as l
   cross join lateral (select * from ${names.messages} as m where m.seq = l.seq offset 0) as m
), page as materialized (
  select blocked.*
    from (select 'parked' as state, parked.* from parked
           union all
          select 'retrying', retrying.* from retrying) as blocked
   order by state, due_at, case state when 'parked' then key end, seq
   ${limit}
)
select 'key' as kind, state, key, seq::text as seq, id::text as id, attempts::text as attempts, failure_reason as reason,
       last_error as error,
       (extract(epoch from since) * 1000)::text as since,
       (extract(epoch from due_at) * 1000)::text as due,
       (extract(epoch from due_at) * 1000000)::bigint::text as micros,
       (select count(*)
          from (select
                  from ${names.messages} as b
                 where b.queue = page.queue
                   and b.key = page.key
                   and b.seq > page.seq
                   and ${inOrder('b.')}
                 order by b.queue, b.key, b.seq
                 limit ${mostWaiting + 1}) as behind)::text as waiting
  from page
 union all
(select 'place', 'retrying', null, seq::text, null, null, null, null, null, null,
        (extract(epoch from due_at) * 1000000)::bigint::text, null
   from later
  where (select count(*) from later) = ${mostLaterLooks}
  order by due_at desc, seq desc
  limit 1)`,
    values,
    input: page,
  }
}
