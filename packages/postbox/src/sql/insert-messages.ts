// Path 2/7 · rows: the same as insert-message.ts for a batch, loaded when there is one.
import type { Batch } from '../core/batch.ts'
import type { Draft } from '../core/message.ts'
import { recordMembers, recordOf, recordShape, valuesOfRecord } from './draft-records.ts'
import { insertedColumns, onConflict } from './draft-rows.ts'
import type { InsertedRow, InsertOptions } from './insert-message.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { wakeClause } from './wake.ts'
import { whereMarked } from './where-marked.ts'

/**
 * Inserts any number of messages of one queue with one parameter: a JSON text, bodies in base64. As text because two
 * clients encode a string bound to jsonb a second time. Rows get their seq in the order of the drafts.
 * Returns the rows written; a draft whose id is missing met a waiting timer.
 */
export function insertMessages(
  names: Names,
  batch: Batch,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow, readonly Draft[]> {
  return {
    name: 'insert_messages',
    text: `
with drafts as (
  select d.*
    from rows from (
           jsonb_to_recordset($2::text::jsonb)
             as (${recordShape})
         ) with ordinality
      as d(${recordMembers}, place)
), inserted as (
  insert into ${names.messages} as m (${insertedColumns})
  select ${valuesOfRecord('$1::text')}
    from drafts
   where ${whereMarked('$3')}
   order by place${onConflict(batch.conflict)}
  returning m.id, m.seq, m.due_at
)${wakeClause(names, wake, '$1::text')}
select id::text as id, seq::text as seq, (select count(*) from woken)::int as woken
  from inserted`,
    values: [batch.queue, JSON.stringify(batch.drafts.map(recordOf)), mark],
    input: batch.drafts,
  }
}
