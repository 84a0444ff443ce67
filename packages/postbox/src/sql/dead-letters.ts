// What the statements about dead letters share: where they lie, how they are read, and which of them are meant.
import { type DeadLetterCursor, type DeadPlace, largestSeq, seqUpTo } from '../core/dead-letter-cursor.ts'
import type { DeadLetterQuery } from '../core/dead-letter-options.ts'
import { deathColumns, keptColumns } from './dead-columns.ts'
import type { Names } from './names.ts'

export interface DeadLetterRow {
  readonly place: DeadPlace
  readonly seq: string
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timer: string | null
  readonly body: string
  readonly headers: string | null
  readonly attempts: string
  readonly deliveries: string
  readonly created: string
  readonly first: string | null
  readonly last: string | null
  readonly generation: string | null
  readonly failed: string
  /** The same in microseconds. */
  readonly micros: string
  readonly reason: string | null
  readonly error: string | null
  readonly history: string | null
  /** 'true' or 'false': it holds its key back. */
  readonly parked: string
}

const shared = [...keptColumns, ...Object.keys(deathColumns)].join(', ')

/** Columns of a dead letter as they are stored, the same in both places. A quarantined timer has given its name up. */
export const columnsOf: Readonly<Record<DeadPlace, string>> = {
  moved: `'moved' as place, dead_seq as seq, timer_id as timer, null::timestamptz as parked_at, ${shared}`,
  quarantined: `'quarantined' as place, seq, coalesce(timer_id, fired_timer_id) as timer, parked_at, ${shared}`,
}

/** Reads rows made of `columnsOf`, all as text. Only for those that are returned: bodies are large. */
export const readable = `place,
       seq::text as seq,
       id::text as id,
       queue,
       key,
       timer,
       encode(body, 'base64') as body,
       headers::text as headers,
       attempts::text as attempts,
       deliveries::text as deliveries,
       (extract(epoch from created_at) * 1000)::text as created,
       (extract(epoch from first_attempt_at) * 1000)::text as first,
       (extract(epoch from last_attempt_at) * 1000)::text as last,
       generation::text as generation,
       (extract(epoch from failed_at) * 1000)::text as failed,
       (extract(epoch from failed_at) * 1000000)::bigint::text as micros,
       failure_reason as reason,
       last_error as error,
       failure_history::text as history,
       (parked_at is not null)::text as parked`

/** The upper end of a row comparison whose last member is a seq. */
export const largestOfIndex = String(largestSeq)

/** Binds a value and returns its parameter. */
export type Bind = (value: unknown) => string

/** Parameters in the order in which a text asks for them. What a filter does not say is not in the text, and no plan has to allow for it. */
export function binder(): { readonly bind: Bind; readonly values: readonly unknown[] } {
  const values: unknown[] = []
  return { bind: (value) => `$${values.push(value)}`, values }
}

export interface Selection {
  readonly query: DeadLetterQuery
  /** null: from the newest on. */
  readonly after: DeadLetterCursor | null
}

/** The rows of one place that are meant: a table with its conditions, and the order in which an index has them, the newest first. */
export interface Selected {
  readonly from: string
  readonly order: string
  /** As far as every index has it: rows that failed in one microsecond in any order. */
  readonly coarseOrder: string
}

/**
 * Queue, time and seq are compared as one row, with both ends inclusive, and the queue is a part of the order: so what is meant is a
 * stretch of one index, whatever Postgres believes of the table. On one that was never analysed it expects few rows of `queue = …`, or
 * between two times, and would fetch and sort all that there are; and of "less than" a row, none of the queue itself. Of two upper ends the
 * lower one is written: given both, Postgres begins at either, and walked through 20,000 pages of the index to a page in the middle.
 */
export function selecting(
  names: Names,
  { query, after }: Selection,
  bind: Bind,
): (place: DeadPlace) => Selected {
  const { queue, sinceMs, untilMs } = query
  const lead = queue === null ? '' : `${bind(queue)}::text, `
  const since = sinceMs === null ? `'-infinity'` : time(bind(sinceMs))
  // One end only: of two, Postgres begins at the first, and walks from there to the other.
  const left = after !== null && isBefore(after.failedMicros, untilMs) ? after : null
  const upTo = left === null ? endOf(untilMs, bind) : microseconds(bind(left.failedMicros))
  const others = matching(query, bind)
  return (place) => {
    const { table, seq, isDead } = sourceOf(names, place)
    const spot = `(${queue === null ? '' : 'queue, '}failed_at, ${seq})`
    const conditions = [
      ...isDead,
      `${spot} >= (${lead}${since}, 0)`,
      `${spot} <= (${lead}${upTo}, ${left === null ? largestSeq : `${bind(seqUpTo(left, place))}::text::bigint`})`,
      ...others,
    ].flat()
    const coarseOrder = `${queue === null ? '' : 'queue desc, '}failed_at desc`
    return {
      coarseOrder,
      order: `${coarseOrder}, ${seq} desc`,
      from: `${table}
    where ${conditions.join('\n      and ')}`,
    }
  }
}

interface Source {
  readonly table: string
  readonly seq: string
  /** What makes a row of the table a dead letter, as its partial indexes have it. */
  readonly isDead: readonly string[]
}

export function sourceOf(names: Names, place: DeadPlace): Source {
  return place === 'moved'
    ? { table: names.dead, seq: 'dead_seq', isDead: [] }
    : { table: names.messages, seq: 'seq', isDead: ['failed_at is not null'] }
}

/**
 * Conditions for who leaves those alone that hold a key. Not by `is null`: on a table that was never analysed Postgres expects that of one row in two hundred,
 * and read and sorted all 20,500 for a batch of 500; of `<>` it expects nearly all.
 */
export function isSpared(place: DeadPlace): readonly string[] {
  return place === 'moved' ? [] : ['(parked_at is null)::int <> 0']
}

export function matching({ reason, key, search }: DeadLetterQuery, bind: Bind): readonly string[] {
  return [
    reason === null ? [] : `failure_reason = ${bind(reason)}::text`,
    key === null ? [] : `key = ${bind(key)}::text`,
    // Not by a pattern: a search for "100%" means these four characters.
    search === null ? [] : `strpos(lower(last_error), lower(${bind(search)}::text)) > 0`,
  ].flat()
}

/** Whether a place in the list lies before this time: then the time is of no account. */
export function isBefore(micros: string, untilMs: number | null): boolean {
  return untilMs === null || BigInt(micros) < BigInt(untilMs) * 1_000n
}

/** The last moment before a time; null: there is none. */
export function endOf(untilMs: number | null, bind: Bind): string {
  return untilMs === null ? `'infinity'` : `${time(bind(untilMs))} - interval '1 microsecond'`
}

export function time(ms: string): string {
  return `to_timestamp(${ms}::float8 / 1000)`
}

export function microseconds(since1970: string): string {
  return `timestamptz 'epoch' + ${since1970}::text::bigint * interval '1 microsecond'`
}
