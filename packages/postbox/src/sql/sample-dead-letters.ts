import type { DeadLetterQuery } from '../core/dead-letter-options.ts'
import { binder, columnsOf, type DeadLetterRow, readable } from './dead-letters.ts'
import type { Names } from './names.ts'
import { oldestFirst, oldestOfBoth } from './oldest-dead-letters.ts'
import type { Statement } from './statement.ts'

export interface Sample {
  readonly query: DeadLetterQuery
  readonly limit: number
}

/** The oldest dead letters that are meant: what a batch would take first. */
export function sampleDeadLetters(names: Names, sample: Sample): Statement<DeadLetterRow, Sample> {
  const { bind, values } = binder()
  const oldest = oldestFirst(names, { query: sample.query, after: null, beforeMicros: null }, bind)
  return {
    name: 'sample_dead_letters',
    text: `
select ${readable}
  from (${oldestOfBoth(oldest, (place) => columnsOf[place], `${bind(sample.limit)}::int`)}) as page
 order by failed_at, place, page.seq`,
    values,
    input: sample,
  }
}
