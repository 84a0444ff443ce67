// Path 2/7 · rows: the same as insert-message.ts for a batch, loaded when there is one.
import type { Batch } from '../core/batch.ts'
import type { Draft } from '../core/message.ts'
import { bytesOf, columnsOf, type DraftColumns } from './draft-columns.ts'
import { dueAfter, dueAt, dueFrom } from './draft-rows.ts'
import type { Inserted, InsertedRow, InsertOptions } from './insert-plain.ts'
import { lockKey, lockKeys, mostKeyLocks } from './lock-keys.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
import type { Statement } from './statement.ts'
import { wakeClause } from './wake.ts'
import { whereMarked } from './where-marked.ts'

/**
 * Inserts any number of messages of one queue: the bytes of all bodies as one parameter, and a text for each kind of thing that some of them have (draft-columns.ts).
 * As text because two clients encode a string bound to jsonb a second time, and one cannot bind arrays. Rows get their seq in the order of the drafts.
 * In an ordered queue the statement has the locks of the keys first: rows are made of what that gives, so the sequence is not asked before.
 * Returns the rows written, as one (see `eachRow`), with their ids where they are fewer than the drafts: one whose id is missing met a waiting timer.
 */
export function insertMessages(
  names: Names,
  batch: Batch,
  { wake, mark }: InsertOptions,
): Statement<InsertedRow, Inserted> {
  const { queue, drafts, conflict } = batch
  const isOrdered = drafts.some((draft) => draft.isOrdered)
  const keys = isOrdered ? [...new Set(drafts.map(({ key }) => key))] : []
  const single = keys.length === 1 ? keys : []
  const columns = columnsOf(drafts, 4)
  const values = [queue, bytesOf(drafts), drafts.length, ...columns.values, ...single, mark]
  const due = dueIn(columns, isOrdered && conflict === 'replace')
  const cells = [...always, ...cellsIn(columns, due, isOrdered)]
  return {
    name: 'insert_messages',
    text: `
with drafts as (${columns.select}
), ${isOrdered ? `${locks(names, keys, `$${values.length - 1}::text`)}, ` : ''}inserted as (
  insert into ${names.messages} as m (${cells.map(([column]) => column).join(', ')})
  select ${cells.map(([, value]) => value).join(', ')}
    from drafts${isOrdered ? ',\n         ordered' : ''}
   where ${whereMarked(`$${values.length}`)}
   order by place${onConflict(conflict, isOrdered)}
  returning m.id, m.seq${due === null ? '' : ', m.due_at'}
)${wakeClause(names, wake, { queue: '$1::text', isNow: due === null })}
select case when count(*) <> $3::int then (select string_agg(id::text, ',') from inserted) end as id,
       string_agg(seq::text, ',') as seq, (select count(*) from woken)::int as woken
  from inserted
having count(*) > 0`,
    values,
    input: { drafts, mark },
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

/** A column of the table, and the SQL expression of its value, of a row of `drafts`. */
type Cell = readonly [column: string, value: string]

const always: readonly Cell[] = [
  ['id', 'id'],
  ['queue', '$1::text'],
  ['body', 'substring($2::bytea from first for size)'],
]

/** When a row is due; null: each at once. A timer of an ordered queue that may replace another is due later, be it now: that one's place lies before others that may be under way. */
function dueIn({ has }: DraftColumns, isReplacing: boolean): string | null {
  const due = scheduled(has.has('delay'), has.has('epoch'))
  if (!isReplacing || !has.has('timer')) return due
  const now = 'statement_timestamp()'
  return due === null
    ? `case when timer is not null then ${now} end`
    : `case when timer is not null then coalesce(${due}, ${now}) else ${due} end`
}

function scheduled(hasDelay: boolean, hasEpoch: boolean): string | null {
  if (hasDelay) return hasEpoch ? dueAt('delay', 'epoch') : dueAfter('delay')
  return hasEpoch ? dueFrom('epoch') : null
}

/**
 * Those that only some messages have. One of an ordered queue that is not yet due has its key in later_key: it neither waits for others of
 * its key nor keeps them waiting, and takes its place among them when it is due (docs/decisions/0037).
 */
function cellsIn({ has }: DraftColumns, due: string | null, isOrdered: boolean): readonly Cell[] {
  const cells: Cell[] = []
  const isLater = isOrdered && due !== null ? `(${due}) is not null` : null
  if (has.has('key')) {
    cells.push(['key', isLater === null ? 'key' : `case when not (${isLater}) then key end`])
    if (isLater !== null) cells.push(['later_key', `case when ${isLater} then key end`])
  }
  if (has.has('timer')) cells.push(['timer_id', 'timer'])
  if (has.has('headers')) cells.push(['headers', 'headers'])
  if (due !== null) cells.push(['due_at', due])
  if (has.has('generation')) cells.push(['generation', 'generation'])
  return cells
}

/** The locks of the keys. Without sorting them, where it is one: 0.79 ms in place of 0.89. */
function locks(names: Names, keys: readonly (string | null)[], single: string): string {
  if (keys.length === 1) return lockKey(names, '$1::text', single)
  return lockKeys(names, '(select $1::text as queue, key from drafts)', keys.length > mostKeyLocks)
}
