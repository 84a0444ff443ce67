import { columnsOf, type DeadLetterRow, readable } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** Reads the newest dead letter of an id, wherever it lies. No row: there is none. */
export function getDeadLetter(names: Names, id: string): Statement<DeadLetterRow, string> {
  return {
    name: 'get_dead_letter',
    text: `
select ${readable}
  from (
  (select ${columnsOf.moved}
     from ${names.dead}
    where id = $1::uuid)
  union all
  (select ${columnsOf.quarantined}
     from ${names.messages}
    where id = $1::uuid
      and failed_at is not null)
  order by failed_at desc, place, seq desc
  limit 1) as newest`,
    values: [id],
    input: id,
  }
}
