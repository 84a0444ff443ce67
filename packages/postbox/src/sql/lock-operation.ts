import type { OperationKind } from '../core/operations.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface OperationLock {
  readonly id: string
  readonly kind: OperationKind
  /** How long this transaction waits for a lock from now on; null: as long as its session does. */
  readonly lockMs: number | null
}

export interface LockedOperation {
  readonly filter: string
  readonly settings: string
  /** In microseconds since 1970. */
  readonly started: string
  readonly changed: string
  readonly conflicts: string
  readonly finished: string
  readonly place: string | null
}

/**
 * How far an operation has come, for who is about to go on with it: until this transaction ends nobody else does. No row: there is none of that kind.
 * The time is of the whole transaction.
 */
export function lockOperation(names: Names, lock: OperationLock): Statement<LockedOperation, OperationLock> {
  return {
    name: 'lock_operation',
    text: `
select filter::text as filter,
       settings::text as settings,
       (extract(epoch from started_at) * 1000000)::bigint::text as started,
       changed::text as changed,
       conflicts::text as conflicts,
       (finished_at is not null)::text as finished,
       place::text as place,
       set_config('lock_timeout', coalesce($3::text, current_setting('lock_timeout')), true) as patience
  from ${names.operations}
 where operation_id = $1::uuid
   and kind = $2::text
   for update`,
    values: [lock.id, lock.kind, lock.lockMs === null ? null : String(lock.lockMs)],
    input: lock,
  }
}
