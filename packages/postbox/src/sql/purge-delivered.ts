import { largestOfIndex } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface PurgeBatch {
  readonly olderThanMs: number
  readonly limit: number
}

/**
 * Deletes the oldest delivered messages, those that are old enough and so many at most, in the order of their index. What somebody else is
 * purging is stepped over. Returns how many: fewer than the limit when nothing more is old enough.
 */
export function purgeDelivered(
  names: Names,
  batch: PurgeBatch,
): Statement<{ readonly purged: string }, PurgeBatch> {
  return {
    name: 'purge_delivered',
    text: `
with old as materialized (
  select d.ctid as spot
    from ${names.delivered} as d
   where (d.delivered_at, d.delivered_seq) <= (statement_timestamp() - make_interval(secs => $1::float8 / 1000), ${largestOfIndex})
   order by d.delivered_at, d.delivered_seq
   limit $2::int
     for update skip locked
), gone as (
  delete from ${names.delivered}
   where ctid = any(array(select spot from old))
  returning 1
)
select count(*)::text as purged
  from gone`,
    values: [batch.olderThanMs, batch.limit],
    input: batch,
  }
}
