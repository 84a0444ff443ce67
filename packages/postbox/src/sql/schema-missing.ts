import { runtimeError } from '../core/runtime-errors.ts'
import { sqlState, sqlStateOf } from '../core/sql-state.ts'

/** An error that says what to do, when a statement failed because the tables were never made; any other as it is. */
export function orSchemaMissing(error: unknown, table: string): unknown {
  if (sqlStateOf(error) !== sqlState.undefinedTable) return error
  return runtimeError('OUTBOX_SCHEMA_MISSING', `there is no table ${table} in this database`, {
    cause: error,
  })
}
