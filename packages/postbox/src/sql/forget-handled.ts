import type { Handled } from './mark-handled.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { whereMarked } from './where-marked.ts'

/**
 * Takes the mark of a message back, in the transaction that has set it: its handler has failed, and a caller who goes on and commits all the same
 * must not have handled it. Returns its id, if it was marked. The lock stays until the transaction ends.
 */
export function forgetHandled(names: Names, handled: Handled): Statement<{ readonly id: string }, Handled> {
  return {
    name: 'forget_handled',
    text: `
delete from ${names.handled}
 where consumer = $1::text
   and id = $2::text
   and ${whereMarked('$3')}
returning id`,
    values: [handled.consumer, handled.id, handled.mark],
    input: handled,
  }
}
