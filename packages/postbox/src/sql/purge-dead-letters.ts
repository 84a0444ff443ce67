import { type DeadPlace, largestSeq } from '../core/dead-letter-cursor.ts'
import { isSpared, sourceOf } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface DeadLetterPurge {
  readonly place: DeadPlace
  readonly olderThanMs: number
  readonly limit: number
}

/**
 * Deletes the oldest dead letters of one place that failed longer ago than that, at most so many. Those that somebody replays this moment are stepped
 * over, and what holds a key is left alone: it would go on without a word. Fewer than the limit: there are no more. By rows and by arrays, so that a table that was never analysed is not read as a whole.
 */
export function purgeDeadLetters(
  names: Names,
  purge: DeadLetterPurge,
): Statement<{ readonly purged: string }, DeadLetterPurge> {
  const { table, seq, isDead } = sourceOf(names, purge.place)
  const conditions = [
    ...isDead,
    ...isSpared(purge.place),
    `(failed_at, ${seq}) >= ('-infinity', 0)`,
    `(failed_at, ${seq}) <= (statement_timestamp() - make_interval(secs => $1::float8 / 1000), ${largestSeq})`,
  ]
  return {
    name: 'purge_dead_letters',
    text: `
with gone as (
  delete from ${table}
   where ${seq} = any(array(
     select ${seq}
       from ${table}
      where ${conditions.join('\n        and ')}
      order by failed_at, ${seq}
      limit $2::int
        for update skip locked))
  returning 1
)
select count(*)::text as purged
  from gone`,
    values: [purge.olderThanMs, purge.limit],
    input: purge,
  }
}
