import type { Statement } from './statement.ts'

// A setting that lasts until the transaction ends: in autocommit, until the end of the very statement that sets it.
const setting = 'postbox.transaction'

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

/** The condition, for a parameter that holds the mark, or null where the handle itself has told. */
export function whereMarked(parameter: string): string {
  return `(${parameter}::text is null or current_setting('${setting}', true) = ${parameter}::text)`
}
