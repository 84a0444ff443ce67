// Path 2/7 · rows: the same as insert-message.ts for a batch, loaded when there is one.
import type { Batch } from '../core/batch.ts'
import type { Draft } from '../core/message.ts'
import {
  inBytes,
  recordMembers,
  recordShape,
  recordsAndBytes,
  valuesOfOrdered,
  valuesOfRecord,
} from './draft-records.ts'
import { insertedColumns, orderedColumns } from './draft-rows.ts'
import type { Inserted, InsertedRow, InsertOptions } from './insert-plain.ts'
import { lockKey, lockKeys, mostKeyLocks } from './lock-keys.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
import type { Statement } from './statement.ts'
import { wakeClause } from './wake.ts'
import { whereMarked } from './where-marked.ts'

/**
 * Inserts any number of messages of one queue with two parameters: a JSON text, and the bytes of all bodies, which the text says how to cut. As text because two
 * clients encode a string bound to jsonb a second time. Rows get their seq in the order of the drafts.
 * In an ordered queue the statement has the locks of the keys first: rows are made of what that gives, so the sequence is not asked before.
 * Returns the rows written, as one (see `eachRow`); a draft whose id is missing met a waiting timer.
 */
export function insertMessages(
  names: Names,
  batch: Batch,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow, Inserted> {
  const isOrdered = batch.drafts.some((draft) => draft.isOrdered)
  const keys = [...new Set(batch.drafts.map(({ key }) => key))]
  const single = isOrdered && keys.length === 1 ? keys : []
  return {
    name: 'insert_messages',
    text: `
with drafts as (
  select d.*
    from rows from (
           jsonb_to_recordset($2::text::jsonb)
             as (${recordShape(bodies)})
         ) with ordinality
      as d(${recordMembers(bodies)}, place)
), ${isOrdered ? `${locks(names, keys)}, ` : ''}inserted as (
  insert into ${names.messages} as m (${isOrdered ? orderedColumns : insertedColumns})
  select ${isOrdered ? valuesOfOrdered(ordered(batch), bodies) : valuesOfRecord('$1::text', bodies)}
    from drafts${isOrdered ? ',\n         ordered' : ''}
   where ${whereMarked(`$${4 + single.length}`)}
   order by place${onConflict(batch.conflict, isOrdered)}
  returning m.id, m.seq, m.due_at
)${wakeClause(names, wake, '$1::text')}
select string_agg(id::text, ',') as id, string_agg(seq::text, ',') as seq, (select count(*) from woken)::int as woken
  from inserted
having count(*) > 0`,
    values: [batch.queue, ...recordsAndBytes(batch.drafts), ...single, mark],
    input: { drafts: batch.drafts, mark },
  }
}

/** One message of an ordered queue. */
export function insertOne(
  names: Names,
  draft: Draft,
  options: InsertOptions,
): Statement<InsertedRow, Inserted> {
  return insertMessages(names, { queue: draft.queue, conflict: draft.conflict, drafts: [draft] }, options)
}

const bodies = inBytes('$3')

function ordered({ conflict }: Batch): Parameters<typeof valuesOfOrdered>[0] {
  return {
    queue: '$1::text',
    isOrdered: 'true',
    isReplacing: conflict === 'replace' ? 'timer is not null' : 'false',
  }
}

/** The locks of the keys. Without sorting them, where it is one: 0.79 ms in place of 0.89. */
function locks(names: Names, keys: readonly (string | null)[]): string {
  if (keys.length === 1) return lockKey(names, '$1::text', '$4::text')
  return lockKeys(names, '(select $1::text as queue, key from drafts)', keys.length > mostKeyLocks)
}
