// Path 2/7 · row: a draft → one statement that inserts it and wakes whoever sleeps (a timer: insert-message.ts, many: insert-messages.ts).
import type { Draft } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'
import { dueAfter, dueFrom } from './draft-rows.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeOfRow } from './wake.ts'
import { whereMarked } from './where-marked.ts'

export interface InsertOptions {
  readonly wake: Wake
  /** The transaction's mark, where the handle cannot tell whether it is in one; else null. */
  readonly mark: string | null
}

/** Of several messages: all ids, and all seqs, joined by commas. A row of its own for each cost pg some 3 µs to read. */
export interface InsertedRow {
  readonly id: string
  readonly seq: string
}

/** A row for each message. What is not ours to read is left as it is. */
export function eachRow(rows: readonly InsertedRow[]): readonly InsertedRow[] {
  return rows.flatMap((row) => {
    if (typeof row.id !== 'string' || typeof row.seq !== 'string') return row
    const seqs = row.seq.split(',')
    return row.id.split(',').map((id, index) => ({ id, seq: seqs[index] as string }))
  })
}

/** What an insert was made of. */
export interface Inserted {
  readonly drafts: readonly Draft[]
  readonly mark: string | null
}

/**
 * Inserts one message, flat: the shape that every client's parameters survive, and the fastest for one row. Only the columns that have a value are named, and
 * the row is one of `values`, unless it depends on the transaction's mark: each parameter and each `select` is parsed and planned anew with every message. That it meets a
 * timer is for insert-message.ts to see to, by the clause `onConflict`. Returns the row written.
 */
export function insertPlain(
  names: Names,
  draft: Draft,
  { wake, mark, onConflict = '' }: InsertOptions & { readonly onConflict?: string },
): Statement<InsertedRow, Inserted> {
  const cells = cellsOf(draft)
  const row = cells.map(({ as }, index) => as(`$${index + 1}`)).join(', ')
  const isNow = draft.schedule.kind === 'now'
  return {
    name: 'insert_message',
    text: `
insert into ${names.messages} as m (${cells.map(({ column }) => column).join(', ')})
${mark === null ? `values (${row})` : `select ${row}\n where ${whereMarked(`$${cells.length + 1}`)}`}${onConflict}
returning m.id::text as id, m.seq::text as seq,
       ${wakeOfRow(names, wake, { queue: '$2::text', isNow })} as woken`,
    values: [...cells.map(({ value }) => value), ...(mark === null ? [] : [mark])],
    input: { drafts: [draft], mark },
  }
}

/** A column of the row, its value, and the SQL expression of that, given its parameter. */
interface Cell {
  readonly column: string
  readonly value: unknown
  readonly as: (parameter: string) => string
}

/** Those that are not null. The queue is the second. */
function cellsOf(draft: Draft): readonly Cell[] {
  const { id, queue, body, key, timerId, headers, generation } = draft
  const cells: Cell[] = [cell('id', id, 'uuid'), cell('queue', queue, 'text'), cell('body', body, 'bytea')]
  if (key !== null) cells.push(cell('key', key, 'text'))
  if (timerId !== null) cells.push(cell('timer_id', timerId, 'text'))
  if (headers !== null) cells.push(cell('headers', JSON.stringify(headers), 'text::jsonb'))
  if (generation !== null) cells.push(cell('generation', generation, 'bigint'))
  return [...cells, ...dueCells(draft.schedule)]
}

function cell(column: string, value: unknown, type: string): Cell {
  return { column, value, as: (parameter) => `${parameter}::${type}` }
}

function dueCells(schedule: Schedule): readonly Cell[] {
  switch (schedule.kind) {
    case 'now':
      return []
    case 'after':
      return [{ column: 'due_at', value: schedule.delayMs, as: (ms) => dueAfter(`${ms}::float8`) }]
    case 'at':
      return [{ column: 'due_at', value: schedule.epochMs, as: (ms) => dueFrom(`${ms}::float8`) }]
    default:
      return unreachable(schedule)
  }
}
