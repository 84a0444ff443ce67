import type { OperationKind } from '../core/operations.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface OperationStart {
  readonly id: string
  readonly kind: OperationKind
  readonly by: string
  readonly filter: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
}

/** Writes down what somebody is about to do. What fails from now on is not a part of it. */
export function startOperation(
  names: Names,
  start: OperationStart,
): Statement<{ readonly id: string }, OperationStart> {
  return {
    name: 'start_operation',
    text: `
insert into ${names.operations} (operation_id, kind, started_by, filter, settings)
values ($1::uuid, $2::text, $3::text, $4::text::jsonb, $5::text::jsonb)
returning operation_id::text as id`,
    values: [start.id, start.kind, start.by, JSON.stringify(start.filter), JSON.stringify(start.settings)],
    input: start,
  }
}
