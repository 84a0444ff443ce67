import type { DeadLetterQuery } from '../core/dead-letter-options.ts'
import { binder } from './dead-letters.ts'
import type { Names } from './names.ts'
import { oldestFirst } from './oldest-dead-letters.ts'
import type { Statement } from './statement.ts'

export interface Survey {
  readonly query: DeadLetterQuery
  readonly bound: number
}

export interface SurveyRow {
  readonly queue: string
  readonly reason: string | null
  readonly count: string
}

/** Counts dead letters by queue and reason, the most first, and stops one above `bound`. Read in the order in which a batch would take them. */
export function surveyDeadLetters(names: Names, survey: Survey): Statement<SurveyRow, Survey> {
  const { bind, values } = binder()
  const { of } = oldestFirst(names, { query: survey.query, after: null, beforeMicros: null }, bind)
  const [moved, quarantined] = [of('moved'), of('quarantined')]
  const limit = `limit ${bind(survey.bound + 1)}::int`
  return {
    name: 'survey_dead_letters',
    text: `
select queue, failure_reason as reason, count(*)::text as count
  from (
  (select queue, failure_reason
     from ${moved.from}
    order by ${moved.order}
    ${limit})
  union all
  (select queue, failure_reason
     from ${quarantined.from}
    order by ${quarantined.order}
    ${limit})
  ${limit}) as seen
 group by queue, failure_reason
 order by count(*) desc, queue, failure_reason`,
    values,
    input: survey,
  }
}
