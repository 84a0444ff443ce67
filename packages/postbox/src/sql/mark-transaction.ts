import type { Statement } from './statement.ts'
import { setting } from './where-marked.ts'

/**
 * For a handle that cannot tell whether it is in a transaction: leaves a mark that only the same transaction can see. Sent before a
 * statement that carries `whereMarked`; outside a transaction the mark is gone by then, and nothing is touched. Exact even
 * when a ROLLBACK slips in between, which no check beforehand can be.
 */
export function markTransaction(mark: string): Statement<{ readonly mark: string }> {
  return {
    name: 'mark_transaction',
    text: `select set_config('${setting}', $1::text, true) as mark`,
    values: [mark],
  }
}

/** Whether the mark is still there. */
export function readMark(mark: string): Statement<{ readonly inside: string }> {
  return {
    name: 'read_mark',
    text: `select (current_setting('${setting}', true) is not distinct from $1::text)::text as inside`,
    values: [mark],
  }
}
