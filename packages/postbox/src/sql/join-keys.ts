import { mayJoin, mostDueLooks } from './first-rows.ts'
import { keyLock, keysGate } from './lock-keys.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface Joining {
  readonly queues: readonly string[]
  /** Of whoever asks: what is too new for him to handle is not counted among what he looks at. It joins its key nevertheless. */
  readonly generation?: number | null
}

/** So many of each queue by one statement. */
const mostJoining = 500

const columns =
  'id, queue, key, timer_id, body, headers, attempts, deliveries, created_at, first_attempt_at, last_attempt_at, generation, last_error, failure_history, fired_timer_id'

/**
 * Messages of ordered queues that have become due take their place in their key, as if they were published now, earliest first: behind all that was
 * committed before. As publishers do, they have the lock of their key before the sequence is asked; a key that somebody is publishing to is left for
 * the next time, since claims must not wait. Its lock is asked for once: were it free for a later one of the same key only, that one would overtake. And it
 * is asked for before they are counted: as many of a key that is not to be had would keep all others waiting.
 * Moved by a delete and an insert: an update would number them in the order of their pages, and what was written after this snapshot (another timer in its
 * place, with another key) would be moved. Returns how many went.
 *
 * What somebody holds is his (a process that claimed it before the order was written down), and would be handled twice. Neither is it looked at, nor what is to
 * be tried again by newer code only: it stays due for long, and enough of it would keep all others waiting.
 * How many are looked at is a column, which the planner cannot know: of a table with hardly more rows it would read all, and sort them.
 */
export function joinKeys(names: Names, input: Joining): Statement<{ readonly joined: number }, Joining> {
  const { queues, generation = null } = input
  return {
    name: 'join_keys',
    text: `
with wanted as materialized (
  select queue, ${mostDueLooks} as looks
    from jsonb_array_elements_text($1::text::jsonb) as w(queue)
   limit $2::int
), sight as materialized (
  select w.queue, s.*
    from wanted as w
   cross join lateral (
     select m.seq, m.later_key, m.due_at
       from ${names.messages} as m, generate_series(1, 1) as once
      where m.queue = w.queue
        and m.due_at >= '-infinity'
        and m.due_at <= now()
        and ${mayJoin('m.', generation === null ? null : '$3::bigint')}
      order by m.due_at, m.seq
      limit w.looks) as s
   where s.later_key is not null
), open as materialized (
  select o.*
    from wanted as w
   cross join lateral (
     select queue, later_key
       from (select s.queue, s.later_key
               from sight as s
              where s.queue = w.queue
              group by s.queue, s.later_key
              order by min(s.due_at), min(s.seq)) as k
      where pg_try_advisory_xact_lock_shared(${keysGate(names, 'queue')})
        and pg_try_advisory_xact_lock(${keyLock(names, 'queue', 'later_key')})
      limit ${mostJoining}) as o
), mine as materialized (
  select d.spot
    from wanted as w
   cross join lateral (
     select l.spot
       from (select s.seq
               from sight as s
               join open as o
                 on o.queue = s.queue
                and o.later_key = s.later_key
              where s.queue = w.queue
              order by s.due_at, s.seq
             offset 0) as s
      cross join lateral (
        select m.ctid as spot
          from ${names.messages} as m
         where m.seq = s.seq
           and m.later_key is not null
           and m.due_at <= now()
           and m.failed_at is null
           for update of m skip locked) as l
      limit ${mostJoining}) as d
), gone as (
  delete from ${names.messages} as m
   where m.ctid = any(array(select spot from mine))
  returning m.*
), joined as (
  insert into ${names.messages} (${columns})
  select ${columns.replace(' key,', ' later_key,')}
    from gone
   order by due_at, seq
  returning seq
)
select count(*)::int as joined
  from joined`,
    values: [JSON.stringify(queues), queues.length, ...(generation === null ? [] : [generation])],
    input,
  }
}
