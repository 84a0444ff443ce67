// Path 2/7 · row: a draft → one statement that inserts it and wakes whoever sleeps (a timer: insert-message.ts, many: insert-messages.ts).
import type { Draft, Receipt } from '../core/message.ts'
import type { Schedule } from '../core/schedule.ts'
import { unreachable } from '../core/unreachable.ts'
import { dueAfter, dueFrom } from './draft-rows.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { lockNames, type Wake, wakeOfRow } from './wake.ts'
import { whereMarked } from './where-marked.ts'

export interface InsertOptions {
  readonly wake: Wake
  /** The transaction's mark, where the handle cannot tell whether it is in one; else null. */
  readonly mark: string | null
}

/**
 * Of several messages one row: all seqs, joined by commas, in the order of the drafts. A row of its own for each cost pg some 3 µs to read. `id` (the ids, joined likewise)
 * is there only where not every draft was written: else they are those of the drafts.
 */
export interface InsertedRow {
  readonly id?: string | null
  readonly seq: string
}

/** A receipt for each message that was written, in the order of the drafts. What is not ours to read is left without a seq. */
export function eachRow(
  rows: readonly InsertedRow[],
  drafts: readonly Pick<Draft, 'id'>[],
): readonly Receipt[] {
  const [first] = drafts
  if (drafts.length === 1) return rows.map(({ id, seq }) => ({ id: (id ?? first?.id) as string, seq }))
  return rows.flatMap((row) => receiptsOf(row, drafts))
}

/** Without their ids, fewer than the drafts are nobody's: who was left out is not known. */
function receiptsOf({ id, seq }: InsertedRow, drafts: readonly Pick<Draft, 'id'>[]): readonly Receipt[] {
  const seqs: readonly string[] = typeof seq === 'string' ? seq.split(',') : []
  const ids = typeof id === 'string' ? id.split(',') : drafts.map((draft) => draft.id)
  const isKnown = ids.length === seqs.length
  return ids.map((own, index) => ({ id: own, seq: (isKnown ? seqs[index] : undefined) as string }))
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
  const count = cells.length
  const columns = cells.map(({ column }) => column).join(', ')
  const row = cells.map(({ as }, index) => as(`$${index + 1}`)).join(', ')
  const values = cells.map(({ value }) => value)
  if (wake === 'quiet') values.push(...lockNames(names, draft.queue))
  if (mark !== null) values.push(mark)
  const woken = wakeOfRow(names, wake, {
    queue: '$2::text',
    locks: [`$${count + 1}::text`, `$${count + 2}::text`],
    isNow: draft.schedule.kind === 'now',
  })
  return {
    name: 'insert_message',
    text: `
insert into ${names.messages} as m (${columns})
${mark === null ? `values (${row})` : `select ${row}\n where ${whereMarked(`$${values.length}`)}`}${onConflict}
returning m.seq::text as seq,
       ${woken} as woken`,
    values,
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
