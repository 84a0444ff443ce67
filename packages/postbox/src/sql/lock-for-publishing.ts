import type { Names } from './names.ts'
import type { NoRow, Statement } from './statement.ts'

/**
 * Takes the lock that the insert takes anyway, and fails with 25P01 outside a transaction block: the only exact way to ask
 * when the client cannot tell. One more round trip, so only then. (Comparing timestamps does not work: the extended
 * protocol makes them differ in autocommit, too.)
 */
export function lockForPublishing(names: Names): Statement<NoRow> {
  return {
    name: 'lock_for_publishing',
    text: `lock table ${names.messages} in row exclusive mode`,
    values: [],
  }
}
