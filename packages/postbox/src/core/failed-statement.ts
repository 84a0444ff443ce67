import { sqlState, sqlStateOf } from './sql-state.ts'

// What may pass by itself, or fails whatever the rows are: connections (08), transaction states (25: a server that became read-only),
// conflicts (40), missing tables and rights (42), resources (53), locks (55), interventions (57), the system (58, XX).
const passingClasses: readonly string[] = ['08', '25', '40', '42', '53', '55', '57', '58', 'XX']

/** Whether a statement failed because of one of its rows, and the others would go through without it: bad data, a constraint, a trigger. */
export function isDataError(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== null && !passingClasses.includes(state.slice(0, 2))
}

// Connection lost (08), server shutting down or session terminated (57P): the statement may have been carried out before.
const lostAnswerClasses: readonly string[] = ['08', '57']

/** Whether a statement that failed may have been carried out all the same: its answer was lost, not its work refused. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === null || (lostAnswerClasses.includes(state.slice(0, 2)) && state !== sqlState.queryCanceled)
}

/** Whether the next statement should go elsewhere: the connection is broken, or it leads to a server that no longer takes writes. */
export function needsNewConnection(error: unknown): boolean {
  return isOutcomeUnknown(error) || sqlStateOf(error) === sqlState.readOnlyTransaction
}

const lockNotAvailable = '55P03'

/**
 * Whether waiting would not help: a row is to blame, or (`burials`) the dead letters as they are: a table that is missing, a column,
 * a right. (`names`) A timer's name that somebody is about to take counts, too: the message can do without it.
 */
export function isRefused(error: unknown, of: 'rows' | 'burials' | 'names'): boolean {
  const state = sqlStateOf(error)
  if (of === 'burials' && isWholesale(error)) return true
  return isDataError(error) || (of === 'names' && state === lockNotAvailable)
}

/** Whether it fails for every row alike, so that there is no use in looking for the one that is to blame: missing tables and rights. */
export function isWholesale(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('42') === true
}
