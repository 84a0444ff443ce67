import type { DeadPlace } from '../core/dead-letter-cursor.ts'
import type { DeadLetterQuery } from '../core/dead-letter-options.ts'
import { binder, selecting } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/**
 * Counts dead letters in both places, and stops one above `bound`. The order is of no use to the count: it makes Postgres take the index
 * that the list takes, where it would otherwise walk the table in search of a rare queue.
 */
export function countDeadLetters(
  names: Names,
  query: DeadLetterQuery,
  bound: number,
): Statement<{ readonly count: string }, { readonly query: DeadLetterQuery; readonly bound: number }> {
  const { bind, values } = binder()
  const selected = selecting(names, { query, after: null }, bind)
  const limit = `limit ${bind(bound + 1)}::int`
  const someOf = (place: DeadPlace): string => {
    const { from, coarseOrder } = selected(place)
    return `
  (select
     from ${from}
    order by ${coarseOrder}
    ${limit})`
  }
  return {
    name: 'count_dead_letters',
    text: `
select count(*)::text as count
  from (${someOf('moved')}
  union all${someOf('quarantined')}
  ${limit}) as seen`,
    values,
    input: { query, bound },
  }
}
