import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface HandledPurge {
  readonly olderThanMs: number
  /** null: of all. */
  readonly consumer: string | null
  readonly limit: number
}

/**
 * Forgets which messages were handled long ago, oldest first, a batch at a time: one statement for millions of rows would hold its snapshot,
 * and what it has deleted, for minutes. Rows that another purge has in hand are stepped over. By their place, which cannot
 * change while they are locked: joined by their key, the whole table was read for each batch. Returns how many; fewer than the limit: no
 * more are that old.
 */
export function purgeHandled(
  names: Names,
  purge: HandledPurge,
): Statement<{ readonly purged: string }, HandledPurge> {
  return {
    name: 'purge_handled',
    text: `
with old as materialized (
  select h.ctid as place
    from ${names.handled} as h
   where h.handled_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
     and ($2::text is null or h.consumer = $2::text)
   order by h.handled_at
   limit $3::int
     for update skip locked
), gone as (
  delete from ${names.handled} as h
   where h.ctid = any (array(select place from old))
  returning 1
)
select count(*)::text as purged
  from gone`,
    values: [purge.olderThanMs, purge.consumer, purge.limit],
    input: purge,
  }
}
