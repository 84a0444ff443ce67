// Path 2/7 · row: drafts → one statement that inserts them and wakes whoever sleeps.
import type { Batch } from '../core/batch.ts'
import type { Headers } from '../core/headers.ts'
import type { Draft } from '../core/message.ts'
import {
  dueAt,
  dueOf,
  insertedColumns,
  onConflict,
  recordMembers,
  recordOf,
  recordShape,
  valuesOfRecord,
} from './draft-rows.ts'
import { whereMarked } from './mark-transaction.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeClause } from './wake.ts'

export interface InsertOptions {
  readonly wake: Wake
  /** The transaction's mark, where the handle cannot tell whether it is in one; else null. */
  readonly mark: string | null
}

export interface InsertedRow {
  readonly id: string
  readonly seq: string
}

/**
 * Inserts one message, flat: the shape that every client's parameters survive, and the fastest for one row.
 * Returns the row written; none when a waiting timer was kept.
 */
export function insertMessage(
  names: Names,
  draft: Draft,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow, readonly Draft[]> {
  const { delayMs, epochMs } = dueOf(draft.schedule)
  return {
    name: 'insert_message',
    text: `
with inserted as (
  insert into ${names.messages} as m (${insertedColumns})
  select $1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::text::jsonb, ${dueAt('$7::float8', '$8::float8')}, $9::bigint
   where ${whereMarked('$10')}${onConflict(draft.conflict)}
  returning m.id, m.seq, m.due_at
)${wakeClause(names, wake, '$2::text')}
select id::text as id, seq::text as seq, (select count(*) from woken)::int as woken
  from inserted`,
    values: [
      draft.id,
      draft.queue,
      draft.key,
      draft.timerId,
      draft.body,
      headersText(draft.headers),
      delayMs,
      epochMs,
      draft.generation,
      mark,
    ],
    input: [draft],
  }
}

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

function headersText(headers: Headers | null): string | null {
  return headers === null ? null : JSON.stringify(headers)
}
