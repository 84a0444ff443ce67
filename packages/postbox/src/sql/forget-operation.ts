import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** Deletes the row of an operation that found nothing to do. No row: it has done something. */
export function forgetOperation(names: Names, id: string): Statement<{ readonly id: string }, string> {
  return {
    name: 'forget_operation',
    text: `
delete from ${names.operations}
 where operation_id = $1::uuid
   and changed = 0
returning operation_id::text as id`,
    values: [id],
    input: id,
  }
}
