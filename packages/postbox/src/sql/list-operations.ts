import type { OperationCursor } from '../core/operation-cursor.ts'
import { binder, microseconds } from './dead-letters.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface OperationPage {
  readonly limit: number
  readonly after: OperationCursor | null
}

export interface OperationRow {
  readonly id: string
  readonly kind: string
  readonly by: string
  readonly filter: string
  readonly settings: string
  readonly started: string
  /** The same in microseconds. */
  readonly micros: string
  readonly updated: string
  readonly finished: string | null
  readonly changed: string
  readonly conflicts: string
}

/** A page of what operators did, newest first, and one row more: whoever gets it knows that there is a next page. */
export function listOperations(names: Names, page: OperationPage): Statement<OperationRow, OperationPage> {
  const { bind, values } = binder()
  const { after, limit } = page
  const left =
    after === null
      ? ''
      : `
 where (started_at, operation_id) < (${microseconds(bind(after.startedMicros))}, ${bind(after.id)}::uuid)`
  return {
    name: 'list_operations',
    text: `
select operation_id::text as id,
       kind,
       started_by as by,
       filter::text as filter,
       settings::text as settings,
       (extract(epoch from started_at) * 1000)::text as started,
       (extract(epoch from started_at) * 1000000)::bigint::text as micros,
       (extract(epoch from updated_at) * 1000)::text as updated,
       (extract(epoch from finished_at) * 1000)::text as finished,
       changed::text as changed,
       conflicts::text as conflicts
  from ${names.operations}${left}
 order by started_at desc, operation_id desc
 limit ${bind(limit + 1)}::int`,
    values,
    input: page,
  }
}
