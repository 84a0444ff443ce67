import type { Names } from './names.ts'
import { pauseText } from './pause-state.ts'
import type { Statement } from './statement.ts'

export interface CountedQueue {
  readonly queue: string
  readonly ready: string
  readonly leased: string
  readonly scheduled: string
  readonly parked: string
  /** Whether a count stopped at its bound: 'true' or 'false'. */
  readonly manynow: string
  readonly manylater: string
  readonly manyparked: string
  /** How long the oldest ready message has waited, in milliseconds; null: none is ready. */
  readonly oldest: string | null
  /** How it stands with the queue, see `pauseFrom`. */
  readonly pause: string | null
}

/**
 * Counts each queue's messages, no more than `bound` in each lane: an exact count of a long queue reads all of it, and whoever asks
 * needs to know that it is long. Fresh and due ones count together (`ready`, `leased`), later ones as `scheduled`, and keys that wait for somebody as `parked`. `once` is what it is in a
 * claim: without it, a table that was never analysed is read and sorted as a whole.
 */
export function countMessages(
  names: Names,
  queues: readonly string[],
  bound: number,
): Statement<CountedQueue, { readonly queues: readonly string[]; readonly bound: number }> {
  return {
    name: 'count_messages',
    text: `
select w.queue,
       (fresh.ready + due.ready)::text as ready,
       (fresh.leased + due.leased)::text as leased,
       later.scheduled::text as scheduled,
       parked.keys::text as parked,
       (fresh.seen = $2::int or due.seen = $2::int)::text as manynow,
       (later.scheduled = $2::int)::text as manylater,
       (parked.keys = $2::int)::text as manyparked,
       (extract(epoch from now() - least(fresh.oldest, due.oldest)) * 1000)::text as oldest,
       ${pauseText('q')} as pause
  from jsonb_array_elements_text($1::text::jsonb) with ordinality as w(queue, once)
  left join ${names.queues} as q
    on q.name = w.queue
 cross join lateral (
   select count(*) as seen,
          count(*) filter (where is_free) as ready,
          count(*) filter (where not is_free) as leased,
          min(created_at) filter (where is_free) as oldest
     from (select m.created_at, (m.lease_token is null or m.leased_until < now()) as is_free
             from ${names.messages} as m, generate_series(w.once, w.once) as once
            where (m.queue, m.seq) > (w.queue, 0)
              and (m.queue, m.seq) <= (w.queue, 9223372036854775807)
              and m.due_at is null
            order by m.queue, m.seq
            limit $2::int) as f) as fresh
 cross join lateral (
   select count(*) as seen,
          count(*) filter (where is_free) as ready,
          count(*) filter (where not is_free) as leased,
          min(due_at) filter (where is_free) as oldest
     from (select m.due_at, (m.lease_token is null or m.leased_until < now()) as is_free
             from ${names.messages} as m, generate_series(w.once, w.once) as once
            where m.queue = w.queue
              and m.due_at <= now()
            order by m.due_at, m.seq
            limit $2::int) as d) as due
 cross join lateral (
   select count(*) as scheduled
     from (select 1
             from ${names.messages} as m, generate_series(w.once, w.once) as once
            where m.queue = w.queue
              and m.due_at > now()
              and m.due_at < 'infinity'
            order by m.due_at, m.seq
            limit $2::int) as l) as later
 cross join lateral (
   select count(*) as keys
     from (select 1
             from ${names.messages} as m, generate_series(w.once, w.once) as once
            where m.queue = w.queue
              and m.parked_at is not null
            order by m.queue, m.key, m.seq
            limit $2::int) as p) as parked
 order by w.queue`,
    values: [JSON.stringify(queues), bound],
    input: { queues, bound },
  }
}
