// What the batches of every operation share: which dead letters, and how the operation gets on with them.
import type { Bind } from './dead-letters.ts'
import type { Names } from './names.ts'
import { oldestFirst, oldestOfBoth, type Stretch, spotOf } from './oldest-dead-letters.ts'

export interface Batch {
  readonly operation: string
  readonly stretch: Stretch
  /** How many are looked at. */
  readonly size: number
}

/** Where the operation is after the batch: sums over its life. */
export interface BatchRow {
  readonly changed: string
  readonly conflicts: string
  readonly finished: string
}

/**
 * `chosen`, the oldest that are left; `locked_moved` and `locked_quarantined`, those of them that nobody else is at. Chosen before they are locked: so
 * no more are locked than are taken, and none is looked at twice. By arrays: a join with a table that was never analysed may read all of it.
 * One that was replayed and has died again meanwhile is not meant any more.
 */
export function choosing(
  names: Names,
  { stretch, size }: Batch,
  {
    bind,
    columns,
  }: { readonly bind: Bind; readonly columns: Readonly<Record<'moved' | 'quarantined', string>> },
): string {
  const oldest = oldestFirst(names, stretch, bind)
  return `chosen as materialized (${oldestOfBoth(oldest, spotOf, `${bind(size)}::int`)}
), locked_moved as materialized (
  select ${columns.moved}
    from ${names.dead}
   where dead_seq = any(array(select seq from chosen where place = 'moved'))
     for update skip locked
), locked_quarantined as materialized (
  select ${columns.quarantined}
    from ${names.messages}
   where seq = any(array(select seq from chosen where place = 'quarantined'))
     and failed_at is not null
     and failed_at <= ${oldest.upTo}${stretch.sparesParked ? '\n     and parked_at is null' : ''}
     for update skip locked
)`
}

/** What the batch came to, as SQL expressions. */
interface Came {
  readonly changed: string
  readonly conflicts: string
  readonly lastDueAt: string
  /** Of what is changed in the operation's whole life; null for no end. */
  readonly limit: string
}

/**
 * `advanced`: the row of the operation, written by the statement that does the work. It has been locked before. It is finished with the batch that finds
 * fewer than it looked for, or reaches the limit.
 */
export function advancing(
  names: Names,
  { operation, size }: Batch,
  { bind, ...came }: Came & { readonly bind: Bind },
): string {
  return `advanced as (
  update ${names.operations} as o
     set changed = o.changed + ${came.changed},
         conflicts = o.conflicts + ${came.conflicts},
         last_due_at = greatest(o.last_due_at, ${came.lastDueAt}),
         place = coalesce((select jsonb_build_object(
                                    'failedMicros', (extract(epoch from failed_at) * 1000000)::bigint::text,
                                    'place', place,
                                    'seq', seq::text)
                             from chosen
                            order by failed_at desc, place desc, seq desc
                            limit 1), o.place),
         updated_at = statement_timestamp(),
         finished_at = case
           when (select count(*) from chosen) < ${bind(size)}::int or o.changed + ${came.changed} >= ${came.limit}
           then statement_timestamp()
         end
   where o.operation_id = ${bind(operation)}::uuid
     and o.finished_at is null
  returning o.changed, o.conflicts, o.finished_at
)`
}

/** The answer, of `advanced`. */
export const progress = `changed::text as changed, conflicts::text as conflicts, (finished_at is not null)::text as finished`
