import { sqlState, sqlStateOf } from './sql-state.ts'

// Data exceptions, constraint violations, program limits (a value too long for an index), and what a trigger raised: one row is to
// blame, and the others would go through without it. Everything else may pass by itself, or fails for all.
const dataErrorClasses: readonly string[] = ['22', '23', '54', 'P0']

/** Whether a statement failed because of one of its rows. */
export function isDataError(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== null && dataErrorClasses.includes(state.slice(0, 2))
}

// Connection lost (08), server shutting down or session terminated (57P): the statement may have been carried out before.
const lostAnswerClasses: readonly string[] = ['08', '57']

/** Whether a statement that failed may have been carried out all the same: its answer was lost, not its work refused. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === null || (lostAnswerClasses.includes(state.slice(0, 2)) && state !== sqlState.queryCanceled)
}
