import type { DeadPlace } from '../core/dead-letter-cursor.ts'
import type { DeadLetterPageQuery } from '../core/dead-letter-options.ts'
import { binder, columnsOf, type DeadLetterRow, readable, selecting } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/**
 * Reads a page of dead letters from both places, newest first, and one row more: whoever gets it knows that there is a next page. Each place
 * is read from where the page before ended, in the order of an index.
 */
export function listDeadLetters(
  names: Names,
  page: DeadLetterPageQuery,
): Statement<DeadLetterRow, DeadLetterPageQuery> {
  const { bind, values } = binder()
  const selected = selecting(names, page, bind)
  const limit = `limit ${bind(page.limit + 1)}::int`
  const newestOf = (place: DeadPlace): string => {
    const { from, order } = selected(place)
    return `
  (select ${columnsOf[place]}
     from ${from}
    order by ${order}
    ${limit})`
  }
  return {
    name: 'list_dead_letters',
    text: `
select ${readable}
  from (${newestOf('moved')}
  union all${newestOf('quarantined')}
  order by failed_at desc, place, seq desc
  ${limit}) as page
 order by failed_at desc, place, page.seq desc`,
    values,
    input: page,
  }
}
