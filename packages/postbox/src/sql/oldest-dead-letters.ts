// Dead letters from the oldest on, for who takes them in batches.
import { type DeadLetterCursor, type DeadPlace, largestSeq, seqFrom } from '../core/dead-letter-cursor.ts'
import type { DeadLetterQuery } from '../core/dead-letter-options.ts'
import { type Bind, isSpared, matching, microseconds, type Selected, sourceOf } from './dead-letters.ts'
import type { Names } from './names.ts'

/** Which dead letters are left. */
export interface Stretch {
  readonly query: DeadLetterQuery
  /** The last one that was looked at; null: none was. */
  readonly after: DeadLetterCursor | null
  /** Only what had failed before this, in microseconds since 1970; null: whatever the query says. */
  readonly beforeMicros: string | null
  /** Those that hold a key are not meant: nobody lets it go on by the way. @default false */
  readonly sparesParked?: boolean
}

export interface Oldest {
  /** The rows of one place in the order of an index. */
  readonly of: (place: DeadPlace) => Omit<Selected, 'coarseOrder'>
  /** The last moment that is meant, as an SQL expression. */
  readonly upTo: string
}

/**
 * As `selecting`, the other way round: one comparison of rows says where to begin, another where to end, and the queue is a part of the order,
 * so that what is meant is a stretch of one index. Of two beginnings Postgres would take the first, and walk from there to the other.
 */
export function oldestFirst(names: Names, stretch: Stretch, bind: Bind): Oldest {
  const { query, after, beforeMicros, sparesParked = false } = stretch
  const { queue, sinceMs } = query
  const lead = queue === null ? '' : `${bind(queue)}::text, `
  const end = endOf(query, beforeMicros)
  const upTo = end === null ? `timestamptz 'infinity'` : microseconds(bind(end))
  const begin = after?.failedMicros ?? (sinceMs === null ? null : String(Math.ceil(sinceMs * 1_000)))
  const from = begin === null ? `'-infinity'` : microseconds(bind(begin))
  const others = matching(query, bind)
  const of: Oldest['of'] = (place) => {
    const { table, seq, isDead } = sourceOf(names, place)
    const spot = `(${queue === null ? '' : 'queue, '}failed_at, ${seq})`
    const least = after === null ? '0' : `${bind(seqFrom(after, place))}::text::bigint`
    const conditions = [
      ...isDead,
      ...(sparesParked ? isSpared(place) : []),
      `${spot} >= (${lead}${from}, ${least})`,
      `${spot} <= (${lead}${upTo}, ${largestSeq})`,
      ...others,
    ]
    return {
      from: `${table}
    where ${conditions.join('\n      and ')}`,
      order: `${queue === null ? '' : 'queue, '}failed_at, ${seq}`,
    }
  }
  return { of, upTo }
}

/** The last microsecond that is meant, as text. */
function endOf({ untilMs }: DeadLetterQuery, beforeMicros: string | null): string | null {
  const until = untilMs === null ? Number.POSITIVE_INFINITY : Math.ceil(untilMs * 1_000)
  const end = Math.min(until, beforeMicros === null ? Number.POSITIVE_INFINITY : Number(beforeMicros))
  return Number.isFinite(end) ? String(end - 1) : null
}

/** So many of both places, as a query: `columns` of each place are to have `place`, `seq` and `failed_at` among them. */
export function oldestOfBoth({ of }: Oldest, columns: (place: DeadPlace) => string, limit: string): string {
  const ofPlace = (place: DeadPlace): string => {
    const { from, order } = of(place)
    return `
  (select ${columns(place)}
     from ${from}
    order by ${order}
    limit ${limit})`
  }
  return `${ofPlace('moved')}
  union all${ofPlace('quarantined')}
  order by failed_at, place, seq
  limit ${limit}`
}

/** The least that tells a dead letter from the others. */
export function spotOf(place: DeadPlace): string {
  return `'${place}' as place, ${place === 'moved' ? 'dead_seq' : 'seq'} as seq, failed_at`
}
