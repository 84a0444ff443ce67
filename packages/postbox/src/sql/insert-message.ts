// Path 2/7 · row: a draft → one statement that inserts it and wakes whoever sleeps (many: insert-messages.ts).
import type { Headers } from '../core/headers.ts'
import type { Draft } from '../core/message.ts'
import { dueAt, dueOf, insertedColumns, onConflict } from './draft-rows.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeClause } from './wake.ts'
import { whereMarked } from './where-marked.ts'

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

function headersText(headers: Headers | null): string | null {
  return headers === null ? null : JSON.stringify(headers)
}
